import { setTimeout as sleep } from 'node:timers/promises'
import { concurrency, fixedWindow } from '@sluice/core'
import { createLimiter } from '../../contract/create-limiter.js'
import { algorithms } from '../../support/algorithms.js'
import type { Check, Venue } from './check.js'

const DAY_MS = 86_400_000
const dayByClock = fixedWindow<string>({ limit: 5, window: '1d', anchor: 'clock' })
/** The milliseconds of Redis and of the test do not begin together. */
const ROUNDED_MS = 3

async function serverMicros({ redis }: Venue): Promise<number> {
  const [seconds, micros] = (await redis.call('TIME')) as [string, string]
  return Number(seconds) * 1_000_000 + Number(micros)
}

/** `ask` resolves to the instant of a decision, which must be the time of the server in whole ms, and not a ms later. */
async function expectServersTime(venue: Venue, ask: () => Promise<number>): Promise<string | undefined> {
  // Late in a second, so that seconds and their fraction differ clearly; several times, as rounding varies.
  for (let tries = 0; tries < 25; ) {
    const before = await serverMicros(venue)
    const decidedAt = await ask()
    const after = await serverMicros(venue)
    // A day may end in between, and just after a second begins, its fraction is nearly 0.
    if (before % 1_000_000 < 20_000 || Math.floor(before / 1000 / DAY_MS) !== Math.floor(after / 1000 / DAY_MS))
      continue
    tries++
    const [from, to] = [Math.floor(before / 1000), Math.floor(after / 1000)]
    if (decidedAt < from || decidedAt > to) return `decided at ${decidedAt}, between ${from} and ${to}`
  }
  return undefined
}

/** A store without a clock reads the clock of the server. */
export const serverTimeChecks: readonly Check[] = [
  {
    name: "server's time: decisions use it",
    run: async (venue) => {
      const limiter = createLimiter({ name: 'time', store: venue.timed, limits: [dayByClock] })
      await venue.redis.call('FLUSHALL')
      await limiter.consume('k')
      return expectServersTime(venue, async () => {
        const { resetAfterMs } = await limiter.peek('k')
        const midnight = Math.ceil((await serverMicros(venue)) / 1000 / DAY_MS) * DAY_MS
        return midnight - resetAfterMs
      })
    },
  },
  {
    name: "server's time: blocks begin by it",
    run: async (venue) => {
      const limiter = createLimiter({ name: 'time', store: venue.timed, limits: [dayByClock] })
      const key = 'sluice:v1:{key=k}:time:block'
      return expectServersTime(venue, async () => {
        await limiter.block('k', { for: '1h', reason: 'a b' })
        const [ends, ...reason] = String(await venue.redis.call('GET', key)).split(' ')
        return reason.join(' ') === 'a b' ? Number(ends) - 3_600_000 : Number.NaN
      })
    },
  },
  ...Object.entries(algorithms).map(
    ([name, limit]): Check => ({
      name: `server's time: keys of ${name} live as long as they count, and expire`,
      run: async ({ redis, timed }) => {
        const windowMs = 3_600_000
        const limiter = createLimiter({ name: 'lives', store: timed, limits: [limit(6, windowMs)] })
        await redis.call('FLUSHALL')
        for (const cost of [1, 2, 1, 2, 1]) {
          const startedAt = performance.now()
          const { resetAfterMs } = await limiter.consume('k', { cost })
          for (const key of (await redis.call('KEYS', '*')) as string[]) {
            const left = Number(await redis.call('PTTL', key))
            const least = resetAfterMs - (performance.now() - startedAt) - ROUNDED_MS
            if (left < least) return `${key} ends in ${left} ms, and counts for ${resetAfterMs}`
            if (left > 2.1 * windowMs) return `${key} stays for ${left} ms`
          }
        }
        return undefined
      },
    }),
  ),
  ...Object.entries(algorithms).map(
    ([name, limit]): Check => ({
      name: `server's time: a refund leaves the other charges of ${name}, and the life of the key`,
      run: async ({ redis, timed }) => {
        const limiter = createLimiter({ name: 'left', store: timed, limits: [limit(6, 3_600_000)] })
        await redis.call('FLUSHALL')
        await limiter.consume('k', { cost: 3 })
        const verdict = await limiter.consume('k', { cost: 2 })
        await sleep(20)
        await limiter.refund('k', verdict)
        const startedAt = performance.now()
        const { remaining, resetAfterMs } = await limiter.peek('k')
        if (remaining !== 3) return `${remaining} remain`
        const [key] = (await redis.call('KEYS', '*')) as [string]
        const left = Number(await redis.call('PTTL', key))
        const least = resetAfterMs - (performance.now() - startedAt) - ROUNDED_MS
        return left < least ? `${key} ends in ${left} ms, and counts for ${resetAfterMs}` : undefined
      },
    }),
  ),
  {
    name: "server's time: a renewed permit extends the life of its key",
    run: async ({ redis, timed }) => {
      const limiter = createLimiter({ name: 'held', store: timed, limits: [concurrency({ limit: 2, ttl: '1h' })] })
      await redis.call('FLUSHALL')
      const verdict = await limiter.consume('k')
      const [key] = (await redis.call('KEYS', '*')) as [string]
      await redis.call('PEXPIRE', key, 60_000)
      await limiter.renew(verdict)
      const left = Number(await redis.call('PTTL', key))
      return left < 3_500_000 ? `it ends in ${left} ms` : undefined
    },
  },
]
