// One process of a service, on the built package as users get it. Requests units of relaxed limits until they refuse, and
// reports the instant of each admission, by the clock that all processes of the machine share, in ms.
import * as sluice from '@sluice/core'
import { Redis } from 'ioredis'

const { fixedWindow, slidingWindow } = sluice
/** @type {Record<string, (options: any) => sluice.Limit<string>>} */
const constructors = { fixedWindow, slidingWindow }

/** @type {{ port: number, syncEvery: number, everyMs: number, limit: number, window: sluice.Duration }} */
const { port, syncEvery, everyMs, limit, window } = JSON.parse(process.argv[2] ?? '{}')
const client = new Redis(port)
client.on('error', () => {})
const store = sluice.redisStore(client, { timeout: 15_000 })
const limiters = Object.entries(constructors).map(([name, make]) => ({
  name,
  /** @type {number[]} */
  admitted: [],
  refused: 0,
  limiter: sluice.createLimiter({ name, store, limits: [make({ limit, window })], consistency: { syncEvery } }),
}))
const now = () => Number(process.hrtime.bigint()) / 1e6

/** @param {(typeof limiters)[number]} of */
async function ask(of) {
  const { allowed } = await of.limiter.consume('all')
  if (allowed) of.admitted.push(now())
  else of.refused++
}

await store.ready()
process.send?.({ state: 'ready' })
process.once('message', () => {
  const timer = setInterval(() => {
    for (const of of limiters) void ask(of)
    // Long enough to receive the counts of all other processes.
    if (limiters.some(({ refused }) => refused < 100)) return
    clearInterval(timer)
    store.close().then(() => {
      process.send?.({
        state: 'done',
        admitted: Object.fromEntries(limiters.map(({ name, admitted }) => [name, admitted])),
      })
    })
  }, everyMs)
})
// The process ends with the test.
process.once('disconnect', () => process.exit())
