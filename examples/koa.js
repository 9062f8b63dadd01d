// @ts-check
// Koa: two limits for everything, decided together.
//
//   node koa.js
//   for i in 1 2 3 4 5 6; do curl -i localhost:3000/; done               # the sixth within a second is refused
import { perMinute, perSecond, rateLimit } from '@sluice/koa'
import Koa from 'koa'

const app = new Koa()

// 5 a second and 100 a minute per IP address: one decision, all or none.
app.use(rateLimit({ name: 'all', limits: [perSecond(5), perMinute(100)] }))

app.use((ctx) => {
  ctx.body = { hello: 'world', remaining: ctx.state.rateLimit?.remaining }
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
