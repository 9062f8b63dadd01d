import { createLimiter, slidingLog } from '@sluice/core'
import { MIDNIGHT } from '../../contract/store-under-test.js'
import type { Check, Venue } from './check.js'

const HOUR_MS = 3_600_000
/** What a log of one limit takes before its ring. */
const HEADER_BYTES = 62
/** What Redis keeps beside a key and its value, and how much it rounds up what it allocates. */
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

/** The most bytes that a log of so many entries may take: what its header does not hold has a quarter more room, in fives. */
function mostBytes(entries: number, width = 4): number {
  const header = HEADER_BYTES + 8 * (width - 4)
  return entries <= 4 ? header : header + width * (entries + 5 * Math.ceil(entries / 20))
}

/** State takes no more room than it has to. */
export const roomChecks: readonly Check[] = [
  {
    name: 'room: a log of what came at once has room for a quarter more, and a short one none beside its header',
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
    name: 'room: a log that grows has room for little more than it holds, and none beyond its limit',
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
    name: 'room: a log frees the room of what has lapsed, however long it is in use',
    run: async (venue) => {
      const log = await alone(venue, 1000, 1000)
      await log.charge(1000)
      // At once, so that it all lapses at once, too.
      venue.clock.now += 1000
      for (let i = 0; i < 120; i++) {
        venue.clock.now += 60
        await log.charge()
        // There are 17 in any second, and the next rewriting may be a second off.
        const bytes = await log.bytes()
        if (bytes > mostBytes(4 * 17)) return `${bytes} bytes after ${i + 1} requests`
      }
      return undefined
    },
  },
  {
    name: 'room: a log from a future that cannot be gets no life from there',
    run: async (venue) => {
      const log = await alone(venue, 9, HOUR_MS)
      for (let i = 0; i < 7; i++) await log.charge()
      venue.clock.now -= 3 * HOUR_MS
      await log.charge()
      // By another clock than Redis's, keys live an hour longer.
      const life = await log.lifeMs()
      return life > 2.1 * HOUR_MS ? `stays for ${life} ms` : undefined
    },
  },
]
