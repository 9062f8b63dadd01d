import { concurrency, fixedWindow, gcra, type Limit, slidingLog } from '@sluice/core'
import { createLimiter } from '../../contract/create-limiter.js'
import { MIDNIGHT } from '../../contract/store-under-test.js'
import { algorithms } from '../../support/algorithms.js'
import type { Check } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

const WINDOW_MS = 60_000
const DAY_MS = 86_400_000
const REQUESTS = 60

/** The commands and bytes of scripts. */
interface Effort {
  /** Commands per admitted request, in steady use. */
  readonly commands: number
  /** Bytes that those write, or read by range. */
  readonly bytes: number
  /** Commands of three refusals, of costs 1, 2 and the whole limit. */
  readonly refused: number
}

interface Use {
  readonly limits: readonly Limit<string>[]
  /** The pause between two requests. */
  readonly everyMs: number
  /** The cost of each request. @default 1 */
  readonly cost?: number
  /** Whether it is measured from the first request on, before entries lapse. */
  readonly isFilling?: true
  /** Whether another identity is blocked. */
  readonly besideABlock?: true
  readonly most: Effort
}

const log = (limit: number, windowMs = WINDOW_MS) => slidingLog<string>({ limit, window: windowMs })
const effort = (commands: number, bytes: number, refused: number): Effort => ({ commands, bytes, refused })
const STEADY_MS = (1.3 * WINDOW_MS) / REQUESTS

/** The effort in steady use of one limit, by algorithm. */
const STEADY: Readonly<Record<string, Effort>> = {
  slidingLog: effort(3.77, 151.8, 7),
  'fixedWindow by clock': effort(3, 8.4, 6),
  'fixedWindow by first request': effort(3, 8.4, 6),
  'strict slidingWindow': effort(3, 4.5, 6),
  'weighted slidingWindow': effort(3, 3.4, 6),
  'dropped slidingWindow': effort(3, 4.5, 6),
  gcra: effort(3, 15.8, 6),
  'greedy tokenBucket': effort(3, 15.8, 6),
  'interval tokenBucket': effort(3, 14.4, 6),
  leakyBucket: effort(3, 15.8, 6),
  'leakyBucket with a queue': effort(3, 15.8, 6),
  // The names of permits differ in length.
  concurrency: effort(7, 110, 18),
}

/** Exact to the command and the byte, so that a change of a cell shows its cost or its saving here. */
const USES: Readonly<Record<string, Use>> = {
  ...Object.fromEntries(
    Object.entries(algorithms).map(([name, limit]): [string, Use] => [
      name,
      { limits: [limit(REQUESTS, WINDOW_MS)], everyMs: STEADY_MS, most: STEADY[name] as Effort },
    ]),
  ),
  'a bucket that drains as fast as it is charged': {
    limits: [gcra({ limit: REQUESTS, window: WINDOW_MS })],
    everyMs: WINDOW_MS / REQUESTS,
    most: effort(3, 15.3, 6),
  },
  'permits that are all in use': {
    limits: [concurrency({ limit: REQUESTS, ttl: WINDOW_MS })],
    everyMs: 1,
    isFilling: true,
    most: effort(6, 90, 18),
  },
  'a log that is always full': { limits: [log(REQUESTS)], everyMs: WINDOW_MS / REQUESTS, most: effort(3.72, 151.6, 7) },
  'a log that its header holds': { limits: [log(4)], everyMs: WINDOW_MS / 4, most: effort(4, 132, 6) },
  'a log that its header just does not hold': { limits: [log(5)], everyMs: WINDOW_MS / 5, most: effort(4.4, 138, 7) },
  'a log that is nearly empty': { limits: [log(REQUESTS)], everyMs: WINDOW_MS / 2, most: effort(4, 132, 7) },
  'a long log': { limits: [log(1000)], everyMs: 150, most: effort(3.56, 151.2, 7) },
  'a log of 60 days': { limits: [log(REQUESTS, 60 * DAY_MS)], everyMs: DAY_MS, most: effort(3.77, 197.1, 7) },
  'a log of bursts': { limits: [log(REQUESTS)], everyMs: WINDOW_MS, cost: 20, most: effort(5.56, 215.7, 7) },
  'a log of small bursts': { limits: [log(REQUESTS)], everyMs: WINDOW_MS / 12, cost: 5, most: effort(5.67, 222.2, 7) },
  'two logs in one': { limits: [log(5, 6000), log(60)], everyMs: 1500, most: effort(3.79, 198, 7) },
  'three logs in one': {
    limits: [log(5, 1000), log(60), log(150, 10 * WINDOW_MS)],
    everyMs: 4000,
    most: effort(3.99, 258.1, 7),
  },
  'a log that fills up': { limits: [log(REQUESTS)], everyMs: 1, isFilling: true, most: effort(3.19, 121.9, 7) },
  'two logs in one that fill up': {
    limits: [log(REQUESTS, 1000), log(REQUESTS)],
    everyMs: 1,
    isFilling: true,
    most: effort(3.19, 148.3, 8),
  },
  'a bucket and a window under one key': {
    limits: [gcra({ limit: REQUESTS, window: WINDOW_MS }), fixedWindow({ limit: 2 * REQUESTS, window: 2 * WINDOW_MS })],
    everyMs: STEADY_MS,
    most: effort(3, 27.2, 6),
  },
  'windows under one key that fill up': {
    limits: [WINDOW_MS, 2 * WINDOW_MS].map((window) => fixedWindow({ limit: REQUESTS, window })),
    everyMs: 1,
    isFilling: true,
    most: effort(3, 27.3, 6),
  },
  'a log, while another identity is blocked': {
    limits: [log(REQUESTS)],
    everyMs: STEADY_MS,
    besideABlock: true,
    // With the block keys of every policy, as the flushed store has no complete index of blocks. Every second of real
    // time, the store looks at the marker of blocks again.
    most: effort(4, 181.8, 7),
  },
}

/** Keys of the index of blocks, which a store reads every second, whatever is decided meanwhile. */
const INDEX_KEY = /\}:\.store:(index|changes)$/

/** The commands that scripts call during `run` to decide, as MONITOR shows them: name, key and the rest. */
async function calledDuring(redis: MutatedRedis, run: () => Promise<void>): Promise<string[][]> {
  const called: string[][] = []
  let onLast = () => {}
  const last = new Promise<void>((resolve) => {
    onLast = resolve
  })
  const end = await redis.monitor((command, isOfScript) => {
    if (isOfScript && !INDEX_KEY.test(command[1] ?? '')) called.push(command)
    else if (command[0] === 'ECHO') onLast()
  })
  try {
    await run()
    await redis.call('ECHO', 'that was all')
    await last
    return called
  } finally {
    end()
  }
}

function bytesOf(called: readonly string[][]): number {
  return called.reduce((sum, [name, , ...rest]) => {
    if (name === 'GETRANGE') return sum + Number(rest[1]) - Number(rest[0]) + 1
    // MONITOR escapes bytes that are no text.
    return sum + rest.join('').replace(/\\x..|\\./g, '?').length
  }, 0)
}

/** The largest effort of three refusals. */
const REFUSED_BYTES = 400
const WRITES = /^(set|setrange|append|del|pexpire|z(add|rem).*)$/i

/** Decisions take the expected commands and bytes however long a key is in use, and refusals write nothing. */
const useChecks: readonly Check[] = Object.entries(USES).map(([name, use]) => ({
  name: `effort: ${name}`,
  run: async ({ redis, store, clock }) => {
    const { limits, everyMs, cost = 1, isFilling, besideABlock, most } = use
    const sizes = limits.map(({ limit }) => limit as number)
    const limiter = createLimiter({ name: 'effort', store, limits })
    await redis.call('FLUSHALL')
    clock.now = MIDNIGHT
    if (besideABlock) await limiter.block('another identity', { for: '1d' })
    let areAllAllowed = true
    const go = async (requests: number) => {
      for (let i = 0; i < requests; i++) {
        clock.now += everyMs
        const { allowed } = await limiter.consume('k', { cost })
        areAllAllowed &&= allowed
      }
    }
    const round = Math.max(...sizes) / cost
    // Otherwise the first round would not be steady use.
    if (!isFilling) await go(round)
    const requests = isFilling ? round : 3 * round
    const called = await calledDuring(redis, () => go(requests))
    if (!areAllAllowed) return 'refused'
    const [commands, bytes] = [called.length / requests, bytesOf(called) / requests]
    if (commands > most.commands || bytes > most.bytes) return `${commands} commands, ${bytes} bytes per request`

    const all = Math.min(...sizes)
    await limiter.consume('full', { cost: all })
    const refused = await calledDuring(redis, async () => {
      for (const cost of [1, 2, all]) await limiter.consume('full', { cost })
    })
    const writes = refused.filter(([command = '']) => WRITES.test(command))
    if (writes.length > 0) return `refusals write: ${JSON.stringify(writes)}`
    const read = bytesOf(refused)
    const isFrugal = refused.length <= most.refused && read <= REFUSED_BYTES
    return isFrugal ? undefined : `${refused.length} commands, ${read} bytes for three refusals`
  },
}))

export const effortChecks: readonly Check[] = [
  ...useChecks,
  {
    name: 'effort: a refusal that is charged to a full bucket sets no expiry',
    run: async ({ redis, store, clock }) => {
      await redis.call('FLUSHALL')
      clock.now = MIDNIGHT
      const limits = [gcra<string>({ limit: 6, window: WINDOW_MS })]
      const limiter = createLimiter({ name: 'full', store, limits, onDeny: 'charge' })
      await limiter.consume('k', { cost: 6 })
      const [key] = (await redis.call('KEYS', '*:full:*')) as [string]
      await redis.call('PERSIST', key)
      await limiter.consume('k')
      return Number(await redis.call('PTTL', key)) === -1 ? undefined : 'it has set an expiry'
    },
  },
]
