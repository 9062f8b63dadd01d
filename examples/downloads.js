// @ts-check
// A download server that slows downloads instead of refusing them. Each address has 2 downloads an hour at full speed.
// Further ones send 256 KiB at once and the rest at 512 KiB a second.
//
//   node downloads.js
//   curl -o /dev/null localhost:3000/file      # 1 MiB; the third takes a second and a half
import { Readable } from 'node:stream'
import { rateLimit, throttle } from '@sluice/koa'
import Koa from 'koa'

const KiB = 1024
const app = new Koa()

app.use(
  rateLimit({
    name: 'downloads',
    limit: 2,
    window: '1h',
    respond: throttle({ after: 256 * KiB, bytesPerSecond: 512 * KiB }),
  }),
)

app.use((ctx) => {
  if (ctx.path !== '/file') return
  ctx.type = 'application/octet-stream'
  ctx.length = 1024 * KiB
  // Any stream works: it is read no faster than the client receives it.
  ctx.body = Readable.from(Array.from({ length: 16 }, () => Buffer.alloc(64 * KiB)))
})

const server = app.listen(Number(process.env.PORT ?? 3000), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => server.close())
