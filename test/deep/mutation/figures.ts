import { type Check, different, PASSED_MS, pairsOf } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

/** Reports of figures, executed as they are: what each leaves in the five keys, and how long these live. */

const MINUTE_MS = 60_000
const HOUR = 500_000
/** The last minute of an hour but one, so that a walk ends in the next hour. */
const MINUTE = HOUR * 60 + 58
const NOW = MINUTE * MINUTE_MS

/** The lives of the keys in ms, as the script says. */
const LIVES = { sent: 3_600_000, live: 10_000, processes: 3_600_000, minute: 604_800_000, hour: 7_776_000_000 }
const KEYS = Object.keys(LIVES).map((key) => `{f}:${key}`)

type Count = readonly [name: string, count: number] | readonly [name: string, count: number, added: number]

interface Report {
  /** Ms after `NOW`; '' for the time of Redis. @default 0 */
  readonly at?: number | ''
  readonly ageMs?: number
  readonly minute?: number
  readonly process?: string
  readonly number: number
  /** Undefined if all counts follow. */
  readonly known?: number
  readonly live?: string
  readonly maxNames?: number
  readonly counts: readonly Count[]
}

/** What the keys hold, by their last part. */
interface Values {
  readonly sent?: string
  readonly live?: string
  readonly processes?: string
  readonly minute?: string
  readonly hour?: string
}

interface Step {
  readonly title: string
  readonly before?: (redis: MutatedRedis) => Promise<unknown>
  readonly report: Report
  /** @default 'added' */
  readonly reply?: 'minute' | 'all'
  /** The keys that hold something else after it. */
  readonly changed?: Values
}

const BIG = 1_000_000_000_000_000
const foreign =
  (...keys: string[]) =>
  async (redis: MutatedRedis) => {
    for (const key of keys) {
      await redis.call('DEL', `{f}:${key}`)
      await redis.call('RPUSH', `{f}:${key}`, 'x')
    }
  }

const STEPS: readonly Step[] = [
  {
    title: 'a report that goes on from one that is not known',
    report: { number: 1, known: 0, counts: [] },
    reply: 'all',
  },
  { title: 'an earlier minute', report: { ageMs: 1, number: 1, counts: [['a|x|as', 5, 0]] }, reply: 'minute' },
  { title: 'a later minute', report: { at: 60_000, number: 1, counts: [['a|x|as', 5, 0]] }, reply: 'minute' },
  {
    title: 'all counts, of which a part was added before',
    report: {
      at: 59_999,
      ageMs: 59_999,
      number: 2,
      live: 'L1',
      counts: [
        ['a|x|as', 5, 2],
        ['b||rs', 3, 3],
        ['c||as', 0, 0],
      ],
    },
    changed: {
      sent: `#=2 @=${MINUTE} a|x|as=5 b||rs=3 c||as=0`,
      live: 'L1',
      processes: `p=${NOW + 59_999}`,
      minute: '=p=1 a|x|as=3',
      hour: '=p=1 a|x|as=3',
    },
  },
  { title: 'the same again', report: { number: 2, live: 'L', counts: [['a|x|as', 6, 0]] } },
  { title: 'one that was overtaken', report: { number: 1, live: 'L', counts: [['a|x|as', 6, 0]] } },
  {
    title: 'the counts that have changed',
    report: { at: 10, number: 3, known: 2, counts: [['a|x|as', 7]] },
    changed: { sent: `#=3 @=${MINUTE} a|x|as=7 b||rs=3 c||as=0`, minute: '=p=1 a|x|as=5', hour: '=p=1 a|x|as=5' },
  },
  {
    title: 'a report that is not known to be added',
    report: { number: 6, known: 4, counts: [['a|x|as', 9]] },
    reply: 'all',
  },
  {
    title: 'nothing has changed',
    report: { number: 4, known: 1, counts: [] },
    changed: { sent: `#=4 @=${MINUTE} a|x|as=7 b||rs=3 c||as=0` },
  },
  {
    title: 'a count that has fallen, and a large one',
    report: {
      number: 5,
      known: 4,
      counts: [
        ['a|x|as', 6],
        ['b||rs', BIG + 4],
      ],
    },
    changed: {
      sent: `#=5 @=${MINUTE} a|x|as=7 b||rs=${BIG + 4} c||as=0`,
      minute: `=p=1 a|x|as=5 b||rs=${BIG + 1}`,
      hour: `=p=1 a|x|as=5 b||rs=${BIG + 1}`,
    },
  },
  {
    title: 'all counts, where Redis has their history',
    report: {
      number: 6,
      counts: [
        ['a|x|as', 8, 0],
        ['d|y|rs', 4, 3],
      ],
    },
    changed: {
      sent: `#=6 @=${MINUTE} a|x|as=8 b||rs=${BIG + 4} c||as=0 d|y|rs=4`,
      minute: `=p=1 a|x|as=6 b||rs=${BIG + 1} d|y|rs=4`,
      hour: `=p=1 a|x|as=6 b||rs=${BIG + 1} d|y|rs=4`,
    },
  },
  {
    title: 'the next minute, with live figures beside those of other processes',
    before: (redis) =>
      redis.call(
        'ZADD',
        '{f}:processes',
        ...[NOW + 50_000, 'ended', NOW + 50_001, 'quiet', NOW + 69_999, 'fast', NOW + 70_000, 'ahead'],
      ),
    report: { at: 60_000, minute: MINUTE + 1, number: 7, known: 6, live: 'L2', counts: [['a|x|as', 9]] },
    changed: {
      sent: `#=7 @=${MINUTE + 1} a|x|as=9 b||rs=${BIG + 4} c||as=0 d|y|rs=4`,
      live: 'L2',
      processes: `fast=${NOW + 69_999} p=${NOW + 60_000} quiet=${NOW + 50_001}`,
      minute: `=p=2 a|x|as=7 b||rs=${BIG + 1} d|y|rs=4`,
      hour: `=p=1 a|x|as=7 b||rs=${BIG + 1} d|y|rs=4`,
    },
  },
  {
    title: 'the next hour, with counts older than others',
    before: (redis) => redis.call('ZADD', '{f}:processes', NOW + 200_000, 'ahead'),
    report: {
      at: 180_500,
      ageMs: 60_000,
      minute: MINUTE + 2,
      process: 'q',
      number: 8,
      known: 7,
      counts: [['a|x|as', 10]],
    },
    changed: {
      sent: `#=8 @=${MINUTE + 2} a|x|as=10 b||rs=${BIG + 4} c||as=0 d|y|rs=4`,
      processes: `ahead=${NOW + 200_000}`,
      minute: `=p=3 a|x|as=8 b||rs=${BIG + 1} d|y|rs=4`,
      hour: `=p=2 a|x|as=8 b||rs=${BIG + 1} d|y|rs=4`,
    },
  },
  {
    title: 'room for one name more',
    report: {
      at: 120_000,
      minute: MINUTE + 2,
      number: 9,
      known: 8,
      maxNames: 5,
      counts: [
        ['e|z|as', 1],
        ['f|z|rs', 2],
        ['g', 3],
        ['a|x|as', 12],
      ],
    },
    changed: {
      sent: `#=9 @=${MINUTE + 2} a|x|as=12 b||rs=${BIG + 4} c||as=0 d|y|rs=4 e|z|as=1 f|z|rs=2 g=3`,
      minute: `=p=3 a|x|as=10 b||rs=${BIG + 1} d|y|rs=4 e|z|as=1 g=3 other||rs=2`,
      hour: `=p=2 a|x|as=10 b||rs=${BIG + 1} d|y|rs=4 e|z|as=1 g=3 other||rs=2`,
    },
  },
  {
    title: 'values of others',
    before: foreign('sent', 'live', 'processes', 'minute', 'hour'),
    report: { number: 10, live: 'L3', counts: [['a|x|as', 14, 12]] },
    changed: {
      sent: `#=10 @=${MINUTE} a|x|as=14`,
      live: 'L3',
      processes: `p=${NOW}`,
      minute: '=p=1 a|x|as=2',
      hour: '=p=1 a|x|as=2',
    },
  },
]

/** Executes a report. Resolves to its reply, and the time in it. */
async function send(redis: MutatedRedis, report: Report): Promise<{ at: number; reply: string }> {
  const {
    at = 0,
    ageMs = 0,
    minute = MINUTE,
    process = 'p',
    number,
    known = '',
    live = '',
    maxNames = 9,
    counts,
  } = report
  const now = at === '' ? '' : NOW + at
  const settings = [now, ageMs, minute, process, number, known, live, maxNames]
  const [time, reply] = (await redis.runNamed('figures', KEYS, [...settings, ...counts.flat()])) as [string, string]
  return { at: Number(time), reply }
}

async function wrongWalk(redis: MutatedRedis): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  let values: Values = {}
  for (const { title, before, report, reply = 'added', changed = {} } of STEPS) {
    await before?.(redis)
    const expected = { at: NOW + Number(report.at ?? 0), reply }
    values = { ...values, ...changed }
    const failure = different(title, await send(redis, report), expected) ?? (await wrongValues(redis, title, values))
    if (failure) return failure
  }
  return undefined
}

async function wrongValues(redis: MutatedRedis, title: string, values: Values): Promise<string | undefined> {
  for (const [key, lifeMs] of Object.entries(LIVES)) {
    const value = values[key as keyof Values]
    const failure = different(`${title}: ${key}`, await textOf(redis, `{f}:${key}`), value)
    if (failure) return failure
    const leftMs = Number(await redis.call('PTTL', `{f}:${key}`))
    if (value !== undefined && (leftMs > lifeMs || leftMs < lifeMs - PASSED_MS))
      return `${title}: ${key} lives ${leftMs} ms, not ${lifeMs}`
  }
  return undefined
}

async function textOf(redis: MutatedRedis, key: string): Promise<string | undefined> {
  const type = String(await redis.call('TYPE', key))
  if (type === 'none') return undefined
  if (type === 'string') return String(await redis.call('GET', key))
  const reply = await (type === 'hash' ? redis.call('HGETALL', key) : redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'))
  return pairsOf((reply as unknown[]).flat().map(String)).join(' ')
}

/** The age of the counts, and the time of Redis in whole ms, decide which minute they belong to. */
async function wrongTime(redis: MutatedRedis): Promise<string | undefined> {
  // Often, as rounding varies.
  for (let number = 1; number <= 20; number++) {
    await redis.call('FLUSHALL')
    const before = await redis.now()
    // The middle of a minute, so that another has not begun when the report comes.
    const ageMs = (before % MINUTE_MS) + MINUTE_MS / 2
    const minute = Math.floor((before - ageMs) / MINUTE_MS)
    const { at, reply } = await send(redis, { at: '', ageMs, minute, number, counts: [['a||as', 1, 0]] })
    const after = await redis.now()
    if (!(at >= before && at <= after)) return `the time of a report is ${at}, not from ${before} to ${after}`
    const failure = different('a report by the time of Redis', reply, 'added')
    if (failure) return failure
  }
  return undefined
}

/** Where a command is not permitted, a report fails and writes nothing. */
async function wrongRights(redis: MutatedRedis): Promise<string | undefined> {
  for (const command of ['hmget', 'zremrangebyscore', 'zscore', 'zcard', 'pexpire', 'hset']) {
    await redis.call('FLUSHALL')
    await redis.call('ACL', 'SETUSER', 'default', `-${command}`)
    try {
      const { reply } = await send(redis, { number: 1, live: 'L', counts: [['a||as', 1, 0]] })
      return `without ${command}: ${reply}`
    } catch {
      const written = ((await redis.call('KEYS', '*')) as unknown[]).map(String)
      const failure = different(`without ${command}`, written, [])
      if (failure) return failure
    } finally {
      await redis.call('ACL', 'SETUSER', 'default', `+${command}`)
    }
  }
  return undefined
}

export const figuresChecks: readonly Check[] = [
  { name: 'figures: each report, the sums and their lives', run: ({ redis }) => wrongWalk(redis) },
  { name: 'figures: by the time of Redis', run: ({ redis }) => wrongTime(redis) },
  { name: 'figures: where commands are not permitted', run: ({ redis }) => wrongRights(redis) },
]
