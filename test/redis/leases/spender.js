// One process of a service, on the built package as users get it. Spends units of the given leases, a few at a
// time. It writes each admission to a file at once, so that none is lost when the process is killed. A line has
// the limit and the interval of the admission, in ms by the clock that all processes of the machine share.
import { openSync, writeSync } from 'node:fs'
import * as sluice from '@sluice/core'
import { Redis } from 'ioredis'

const { slidingLog, gcra, fixedWindow } = sluice
/** @type {Record<string, (options: any) => sluice.Limit<string>>} */
const constructors = { slidingLog, gcra, fixedWindow }

/** @type {{ file: string, port: number, timeout: number, everyMs: number, atOnce: number, limits: Record<string, object> }} */
const { file, port, timeout, everyMs, atOnce, limits } = JSON.parse(process.argv[2] ?? '{}')
const admissions = openSync(file, 'a')
const client = new Redis(port)
// The test cuts and delays its connections.
client.on('error', () => {})
const store = sluice.redisStore(client, { timeout })
const limiters = Object.entries(limits).map(([make, options]) => ({
  make,
  limiter: sluice.createLimiter({
    name: 'leases',
    store,
    limits: [/** @type {(options: object) => sluice.Limit<string>} */ (constructors[make])(options)],
    // The test does not count local admissions during an outage.
    unavailable: { decide: 'deny' },
  }),
}))

const now = () => Number(process.hrtime.bigint()) / 1e6

/** @param {{ make: string, limiter: sluice.Limiter<string> }} of */
async function ask({ make, limiter }) {
  const before = now()
  const { allowed } = await limiter.consume('all')
  if (allowed) writeSync(admissions, `${make} ${before} ${now()}\n`)
}

client.once('ready', () => {
  process.send?.('ready')
  setInterval(() => {
    for (const of of limiters) for (let n = 0; n < atOnce; n++) void ask(of)
  }, everyMs)
})
// The process ends with the test.
process.once('disconnect', () => process.exit())
