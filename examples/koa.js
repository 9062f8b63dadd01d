// @ts-check
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
