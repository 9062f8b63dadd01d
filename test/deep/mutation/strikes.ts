import type { Check } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

const T = 1_000_000_000_000
const SLACK_MS = 3_600_000
/** The longest time between an execution and the reading of a key's remaining life. */
const PASSED_MS = 900
const [RECORD, BLOCK, MARKER] = ['{s}:strikes', '{s}:block', '{s}:marker']
/** Three strikes within a second, remembered for ten seconds; bans of five seconds and of a minute. */
const TERMS = [3, 1000, 10_000, 5000, 60_000]
const JITTER_MS = 7

/** A strike, or with a weight of 0 the end of all strikes, and the expected state; times in ms from `T`. */
interface Step {
  readonly at: number
  readonly weight?: number
  /** The remaining ms of a marker that exists before. */
  readonly markedMs?: number
  /** The rung, the instant at which it is forgotten, and the strikes; none where there is no record. */
  readonly record?: readonly [rung: number, since: number, ...strikes: number[]]
  readonly livesMs?: number
  /** The ban that this starts: its end, its rung, and its strikes. */
  readonly ban?: readonly [ends: number, rung: number, strikes: number]
}

const STEPS: readonly Step[] = [
  { at: 0, record: [0, 0, 0], livesMs: 1000 },
  { at: 999, record: [0, 999, 0, 999], livesMs: 1000 },
  // The first ban ends at the exact millisecond.
  { at: 1000, record: [0, 1000, 999, 1000], livesMs: 1000 },
  { at: 1001, record: [1, 6008], livesMs: 15_007, ban: [6008, 1, 3] },
  { at: 7000, record: [1, 7000, 7000], livesMs: 10_000 },
  // After a small step back, a strike counts at the last one's instant; after a larger one, all strikes move to the new time.
  { at: 6500, record: [1, 7000, 7000, 7000], livesMs: 10_500 },
  { at: 20, record: [2, 60_027], livesMs: 70_007, ban: [60_027, 2, 3] },
  { at: 61_000, weight: 3, record: [2, 121_007], livesMs: 70_007, ban: [121_007, 2, 3], markedMs: 7_200_000 },
  { at: 121_007, weight: 2, record: [2, 121_007, 121_007], livesMs: 10_000 },
  // The rung is forgotten at the exact millisecond.
  { at: 131_007, record: [0, 131_007, 131_007], livesMs: 1000 },
  { at: 30, record: [0, 30, 30, 30], livesMs: 1000 },
  { at: 131_008, weight: 3, record: [1, 136_015], livesMs: 15_007, ban: [136_015, 1, 3] },
  { at: 136_016, record: [1, 136_016, 136_016], livesMs: 10_000 },
  { at: 50, record: [1, 136_016, 50, 50], livesMs: 145_966 },
  { at: 136_017, weight: 0, record: [1, 136_016], livesMs: 9999 },
  { at: 146_016, weight: 0 },
]

async function wrongStep(redis: MutatedRedis, { at, weight = 1, record, livesMs = 0, ban, markedMs }: Step) {
  if (markedMs) await redis.call('SET', MARKER, '1', 'PX', markedMs)
  const args = [T + at, weight, JITTER_MS, 'why', 1, ...TERMS]
  const reply = (await redis.runNamed('strike', [RECORD, BLOCK, MARKER], args)) as string[]
  const reason = ban ? `\0${ban[1]} ${ban[2]} why` : ''
  const expected = [T + at, ban ? T + ban[0] : 0, reason, ban ? 1 : 0].map(String)
  if (reply.join('|') !== expected.join('|')) return `replies ${JSON.stringify(reply)}`
  const bytes = await redis.bytes(RECORD)
  const found = bytes ? [bytes.readUInt8(0), bytes.readUIntBE(1, 6) - T] : []
  const weights: number[] = []
  for (let i = 7; bytes && i < bytes.length; i += 8) {
    found.push(bytes.readUIntBE(i, 6) - T)
    weights.push(bytes.readUInt16BE(i + 6))
  }
  if (found.join() !== (record ?? []).join()) return `stores ${found.join()}`
  if (weights.length > 0 && weights.at(-1) !== weight) return `stores weights ${weights.join()}`
  if (record && (await isWrongLife(redis, RECORD, livesMs))) return 'the record lives for another time'
  if (!ban) return undefined
  const lifeMs = ban[0] - at
  if ((await redis.call('GET', BLOCK)) !== `${T + ban[0]} ${reason}`) return 'the block is another'
  if (await isWrongLife(redis, BLOCK, lifeMs)) return 'the block lives for another time'
  const markerMs = markedMs ? markedMs - SLACK_MS : lifeMs
  if (await isWrongLife(redis, MARKER, markerMs)) return 'the marker lives for another time'
  await redis.call('DEL', BLOCK, MARKER)
  return undefined
}

/** With a custom clock, every key lives an hour longer. */
async function isWrongLife(redis: MutatedRedis, key: string, ms: number): Promise<boolean> {
  const left = Number(await redis.call('PTTL', key)) - SLACK_MS
  return left > ms || left < ms - PASSED_MS
}

const OTHER = '{s}:other'
/** The values of the two block keys, and the end of the block that holds at 10 ms. */
const BLOCKS: readonly { readonly ends: readonly [string | undefined, string | undefined]; readonly holds: number }[] =
  [
    { ends: [`${T + 50} why`, undefined], holds: 50 },
    { ends: [undefined, `${T + 50} why`], holds: 50 },
    { ends: [`${T + 50} why not`, `${T + 60} why`], holds: 60 },
    { ends: [`${T + 60} why`, `${T + 50} why not`], holds: 60 },
    { ends: [`${T + 60} why`, `${T + 60} why not`], holds: 60 },
    { ends: [`${T + 11} why`, `${T + 10} why not`], holds: 11 },
    { ends: [`${T + 10} why not`, undefined], holds: 0 },
    { ends: [`${T + 9} why not`, 'nothing of ours'], holds: 0 },
    { ends: ['', undefined], holds: 0 },
  ]

/** No strike counts for a blocked identity, and the reply has the block that ends last. */
async function wrongBlocked(redis: MutatedRedis, { ends, holds }: (typeof BLOCKS)[number]) {
  await redis.call('FLUSHALL')
  for (const [i, value] of ends.entries()) {
    const key = [BLOCK, OTHER][i] as string
    if (value === '') await redis.call('HSET', key, 'nothing', 'of ours')
    else if (value !== undefined) await redis.call('SET', key, value)
  }
  const args = [T + 10, 1, JITTER_MS, 'note', 2, ...TERMS]
  const reply = (await redis.runNamed('strike', [RECORD, BLOCK, OTHER, MARKER], args)) as string[]
  const expected = [T + 10, holds > 0 ? T + holds : 0, holds > 0 ? 'why' : '', 0].map(String)
  if (reply.join('|') !== expected.join('|')) return `replies ${JSON.stringify(reply)}`
  const isStruck = (await redis.call('EXISTS', RECORD)) === 1
  return isStruck === (holds === 0) ? undefined : `struck: ${isStruck}`
}

/** Forgetting strikes leaves a foreign record, and creates none. */
async function wrongForgotten(redis: MutatedRedis) {
  for (const value of ['', 'a hash', 'short', '\x01abcdef']) {
    await redis.call('FLUSHALL')
    if (value === 'a hash') await redis.call('HSET', RECORD, 'nothing', 'of ours')
    else if (value !== '') await redis.call('SET', RECORD, value)
    await redis.runNamed('strike', [RECORD, BLOCK, MARKER], [T, 0, 0, '', 1, ...TERMS])
    if (value !== '' && (await redis.call('EXISTS', RECORD)) !== 1) return `${JSON.stringify(value)} is deleted`
    if (value === '' && (await redis.call('EXISTS', RECORD)) !== 0) return 'there is a record of nothing'
  }
  return undefined
}

export const strikeChecks: readonly Check[] = [
  ...BLOCKS.map(
    (blocks): Check => ({
      name: `strikes: beside blocks until ${blocks.ends.join(' and ')}`,
      run: ({ redis }) => wrongBlocked(redis, blocks),
    }),
  ),
  { name: 'strikes: forgotten where there is no record', run: ({ redis }) => wrongForgotten(redis) },
  {
    name: 'strikes: the record of each, its life, and the ban that follows',
    run: async ({ redis }) => {
      await redis.call('FLUSHALL')
      for (const step of STEPS) {
        const wrong = await wrongStep(redis, step)
        if (wrong !== undefined) return `at ${step.at}: ${wrong}`
      }
      return undefined
    },
  },
]
