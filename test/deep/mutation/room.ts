import { createLimiter, slidingLog } from '@sluice/core'
import { MIDNIGHT } from '../../contract/store-under-test.js'
import { algorithms } from '../../support/algorithms.js'
import type { Check, Venue } from './check.js'

const HOUR_MS = 3_600_000
/** The bytes of a log of one limit before its ring. */
const HEADER_BYTES = 62
/** The bytes that Redis stores beside a key and its value, and the factor by which it rounds up allocations. */
const AROUND_BYTES = 120
const ROUNDED_UP = 1.25

/** A log of one limit, alone in Redis. */
async function alone({ redis, store, clock }: Venue, limit: number, windowMs: number) {
  await redis.call('FLUSHALL')
  clock.now = MIDNIGHT
  const limiter = createLimiter({ name: 'room', store, limits: [slidingLog({ limit, window: windowMs })] })
  const key = `sluice:v1:{key=k}:room:log.${limit}.${windowMs}`
  return {
    charge: (cost = 1) => limiter.consume('k', { cost }),
    bytes: async () => Number(await redis.call('STRLEN', key)),
    memory: async () => Number(await redis.call('MEMORY', 'USAGE', key)),
    lifeMs: async () => Number(await redis.call('PTTL', key)),
  }
}

/** The largest size of a log in bytes: entries outside its header have a quarter more room, in steps of five. */
function mostBytes(entries: number, width = 4): number {
  const header = HEADER_BYTES + 8 * (width - 4)
  return entries <= 4 ? header : header + width * (entries + 5 * Math.ceil(entries / 20))
}

/** State takes no more memory than it needs. */
export const roomChecks: readonly Check[] = [
  {
    name: 'room: a log of simultaneous entries has room for a quarter more, and a short one only its header',
    run: async (venue) => {
      for (let entries = 1; entries <= 30; entries++) {
        const log = await alone(venue, 1000, HOUR_MS)
        await log.charge(entries)
        const bytes = await log.bytes()
        if (bytes > mostBytes(entries)) return `${bytes} bytes for ${entries} entries`
      }
      return undefined
    },
  },
  {
    name: 'room: a growing log has room for little more than its entries, and none beyond its limit',
    run: async (venue) => {
      const log = await alone(venue, 100, HOUR_MS)
      for (let entries = 1; entries <= 100; entries++) {
        venue.clock.now++
        await log.charge()
        const [bytes, memory] = [await log.bytes(), await log.memory()]
        const most = Math.min(mostBytes(entries), HEADER_BYTES + 4 * 100)
        if (bytes > most) return `${bytes} bytes for ${entries} entries`
        if (memory > ROUNDED_UP * most + AROUND_BYTES) return `${memory} bytes of memory for ${entries} entries`
      }
      return undefined
    },
  },
  {
    name: 'room: an entry takes four bytes up to a window of 2^32 ms, and six beyond',
    run: async (venue) => {
      for (const [windowMs, width] of [
        [2 ** 32, 4],
        [2 ** 32 + 1, 6],
      ] as const) {
        const log = await alone(venue, 20, windowMs)
        await log.charge(20)
        const bytes = await log.bytes()
        if (bytes > mostBytes(20, width) - 5 * width) return `${bytes} bytes for 20 entries in ${windowMs} ms`
      }
      return undefined
    },
  },
  {
    name: 'room: a log frees the memory of lapsed entries, however long it is in use',
    run: async (venue) => {
      const log = await alone(venue, 1000, 1000)
      await log.charge(1000)
      // All at once, so that all entries lapse at once.
      venue.clock.now += 1000
      for (let i = 0; i < 120; i++) {
        venue.clock.now += 60
        await log.charge()
        // Any second has 17 entries, and the next rewrite may be a second later.
        const bytes = await log.bytes()
        if (bytes > mostBytes(4 * 17)) return `${bytes} bytes after ${i + 1} requests`
      }
      return undefined
    },
  },
  {
    name: 'room: a log from an impossible future does not extend its life',
    run: async (venue) => {
      const log = await alone(venue, 9, HOUR_MS)
      for (let i = 0; i < 7; i++) await log.charge()
      venue.clock.now -= 3 * HOUR_MS
      await log.charge()
      // With a clock other than that of Redis, keys live an hour longer.
      const life = await log.lifeMs()
      return life > 2.1 * HOUR_MS ? `stays for ${life} ms` : undefined
    },
  },
  ...Object.entries(algorithms).map(
    ([name, limit]): Check => ({
      name: `room: a full refund leaves no key of ${name}`,
      run: async ({ redis, store, clock }) => {
        await redis.call('FLUSHALL')
        clock.now = MIDNIGHT
        const limiter = createLimiter({ name: 'whole', store, limits: [limit(6, HOUR_MS)] })
        await limiter.refund('k', await limiter.consume('k', { cost: 2 }))
        const left = (await redis.call('KEYS', '*:whole:*')) as unknown[]
        return left.length === 0 ? undefined : `left: ${left.join()}`
      },
    }),
  ),
]
