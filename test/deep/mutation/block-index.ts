import { erasedField } from '../../../packages/core/src/redis/blocks/entry.js'
import { randomFrom } from '../../contract/policies.js'
import type { Check } from './check.js'
import { DAY_MS, type Op, SALTS, Shard, SLACK_MS } from './index-shard.js'
import type { MutatedRedis } from './mutated-redis.js'

/** The longest time between an execution and the reading of a key's remaining life. */
const PASSED_MS = 5000
const STEPS = 220

const [ENTRIES, CHANGES, MARKER] = ['{s}:entries', '{s}:changes', '{s}:marker']
const FIELDS = ['p:ip=1', 'p:ip=2', 'q:ip=1', '.store:user=ann', 'p:user=bob']
const blockKey = (field: string) => `{s}:block:${field}`
const strikesKey = (field: string) => `{s}:strikes:${field}`

type Wrong = (what: string, got: unknown, expected: unknown) => string | undefined

/** Compares random changes, pages and clearings of a shard with the expected shard, some of them after the loss of a key. */
async function walk(redis: MutatedRedis, seed: number, hasMarker: boolean): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  const random = randomFrom(seed)
  const shard = new Shard()
  let now = 1_728_000_000_000
  for (let step = 0; step < STEPS; step++) {
    now += gap(random, shard, now)
    const wrong: Wrong = (what, got, expected) =>
      JSON.stringify(got) === JSON.stringify(expected)
        ? undefined
        : `step ${step}: ${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(expected)}`
    if (step > 0 && random(12) === 0) await lose(redis, shard, random(5))
    const incarnation = `i${step}`
    const what = step === 0 && seed % 2 === 0 ? 10 : random(10 + (shard.head ? 1 : 0))
    let failure: string | undefined
    if (what < 6) {
      const ops = Array.from({ length: random(4) }, (_, i) => opAt(now, random, i, shard))
      const keys = ops.flatMap(([field]) => [blockKey(field), strikesKey(field)])
      for (const key of keys) if (hasMarker && key.includes('strikes')) await redis.call('SET', key, '1')
      const epoch = random(8) === 0 ? now - random(2) * random(DAY_MS) : 0
      const all = [ENTRIES, CHANGES, ...(hasMarker ? [MARKER, ...keys] : [])]
      const { got, lives } = await run(redis, shard, 'index', all, [now, incarnation, epoch, ...ops.flat()])
      failure =
        wrong('change', got, shard.change(now, incarnation, epoch, ops, hasMarker)) ??
        wrongLife(shard, lives) ??
        (hasMarker ? await wrongBlocks(redis, shard, ops, now, wrong) : undefined)
    } else if (what < 10) {
      const [most, field] = [1 + random(4), random(2) === 0 ? '' : (FIELDS[random(FIELDS.length)] as string)]
      // Often the version of the field, as a process asks that knows all.
      const known = random(2) === 0 ? shard.entries.get(field)?.version : undefined
      const after = known ?? random((shard.head?.version ?? 0) + 2)
      const { got } = await run(redis, shard, 'index-page', [ENTRIES, CHANGES], [now, after, most, field])
      failure = wrong('page', got, shard.page(now, after, most, field))
    } else {
      const most = 1 + random(3)
      const { got, lives } = await run(redis, shard, 'index-clear', [ENTRIES, CHANGES], [now, incarnation, most])
      failure = wrong('clear', got, shard.clear(now, incarnation, most)) ?? wrongLife(shard, lives)
    }
    if (failure) return failure
  }
  return undefined
}

/** The time that passes: often exactly to an instant at which an entry may be removed. */
function gap(random: (below: number) => number, shard: Shard, now: number): number {
  const ends = [...shard.entries.values()].map(({ ends }) => ends + SLACK_MS)
  const next = ends[random(ends.length + 1)]
  if (next !== undefined && next > now && random(3) === 0) return next - now - 1 + random(2)
  return [0, 1, random(2000), random(100_000)][random(4)] as number
}

function opAt(now: number, random: (below: number) => number, i: number, { entries }: Shard): Op {
  const field = FIELDS[random(FIELDS.length)] as string
  const erased = erasedField(field, SALTS[random(SALTS.length)] as string)
  const reason = ['', `r${i}`, 'a reason 1 2'][random(3)] as string
  const near = () => now + random(7) - 3
  const ended = (sinceOf: string): [first: number, second: number, third: number] => {
    const until = [0, near() - SLACK_MS, now + random(4000)][random(3)] as number
    const known = entries.get(sinceOf)?.since ?? now
    return [until, random(2), [0, 0, known, known - 1, now][random(5)] as number]
  }
  switch (random(5)) {
    case 0:
      return [
        field,
        'BLOCK',
        random(9) === 0 ? 3 * DAY_MS : 1 + random(5000),
        random(4) === 0 ? now + 1 + random(9000) : 0,
        0,
        reason,
      ]
    case 1: {
      // Around the start of its entry, or around the end of its name, if that was erased.
      const other = entries.get(random(2) === 0 ? field : erased)?.since
      const since = other !== undefined && random(2) === 0 ? other - 1 + random(3) : now - random(4) * random(50_000)
      return [field, 'KEEP', random(2) === 0 ? near() : now + random(9000), since, random(3), reason]
    }
    case 2:
      return [field, 'ERASE', ...ended(random(2) === 0 ? field : erased), erased]
    case 3:
      // A process that knows the end of an erased name writes it again.
      return [erased, 'END', ...ended(erased), '']
    default:
      return [field, 'END', ...ended(random(3) === 0 ? erased : field), '']
  }
}

/** Changes keys as an eviction, or another program, would. */
async function lose(redis: MutatedRedis, shard: Shard, how: number): Promise<void> {
  if (!shard.head) return
  const hadEntries = shard.entries.size > 0
  if (how === 0) await redis.call('DEL', ENTRIES)
  else if (how === 1) await redis.call('DEL', CHANGES)
  else if (how === 2) await redis.call('SET', ENTRIES, 'foreign', 'PX', DAY_MS)
  else if (how === 3) await redis.call('SET', CHANGES, 'foreign', 'PX', DAY_MS)
  else await redis.call('HDEL', ENTRIES, [...shard.entries.keys()][0] ?? 'none')
  // Without entries there is no sorted set to lose.
  if (!hadEntries && (how === 1 || how === 4)) return
  shard.epochLeft = how === 0 || how === 2 ? 0 : (shard.head?.epoch ?? shard.epochLeft)
  shard.head = undefined
}

/** Executes a script with all keys at the start of their lives, and reads these. No real time between scripts ends a key. */
async function run(redis: MutatedRedis, shard: Shard, name: string, keys: string[], args: (string | number)[]) {
  const expire = (key: string, ms: number) => redis.call('PEXPIRE', key, ms).catch(() => {})
  for (const [key, life] of livesOf(shard)) if (life > 0) expire(key, life)
  const reply = redis.runNamed(name, keys, args)
  const left = Promise.all(livesOf(shard).map(([key]) => redis.call('PTTL', key)))
  for (const [key] of livesOf(shard)) expire(key, DAY_MS)
  const [got, lives] = await Promise.all([reply, left])
  return { got, lives: lives.map(Number) }
}

const livesOf = ({ life, changesLife, markerLife }: Shard) =>
  [
    [ENTRIES, life],
    [CHANGES, changesLife],
    [MARKER, markerLife],
  ] as const

function wrongLife(shard: Shard, lives: readonly number[]): string | undefined {
  for (const [i, [key, life]] of livesOf(shard).entries()) {
    const left = lives[i] as number
    if (life > 0 && (left > life || left < life - PASSED_MS)) return `${key} lives ${left} ms, not ${life}`
  }
  return undefined
}

/** The failure of the blocks that a change has written, if any. */
async function wrongBlocks(
  redis: MutatedRedis,
  shard: Shard,
  ops: readonly Op[],
  now: number,
  wrong: Wrong,
): Promise<string | undefined> {
  for (const [field, op] of ops) {
    const [value, left, strikes] = await Promise.all([
      redis.call('GET', blockKey(field)),
      redis.call('PTTL', blockKey(field)),
      redis.call('EXISTS', strikesKey(field)),
    ])
    const held = shard.blocks.get(field)
    // Real time has ended its life, while the test moves another clock.
    if (value !== null || held === undefined) {
      const failure = wrong(`block of ${field}`, value === null ? undefined : String(value), held)
      if (failure) return failure
    }
    if (ops.filter((other) => other[0] === field).length === 1) {
      if (strikes !== (shard.cleared.has(field) ? 0 : 1)) return `${strikes} strikes of ${field} stay`
      const expected = Number(held?.split(' ')[0]) - now + SLACK_MS
      if (op === 'BLOCK' && (Number(left) > expected || Number(left) < expected - PASSED_MS))
        return `block of ${field} lives ${left} ms, not ${expected}`
    }
  }
  return undefined
}

/** Ends and starts in the first ms of a clock of the user's, which may begin at 0. */
async function early(redis: MutatedRedis): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  const erased = erasedField('a', SALTS[0])
  const kept = (field: string) => [field, 'KEEP', 100, 1, 1, '']
  const first = await redis.runNamed('index', [ENTRIES, CHANGES], [10, 'i', 0, ...kept('b')])
  const ends = [...['a', 'ERASE', 0, 0, 0, erased], ...['d', 'END', 0, 0, 0, ''], ...['e', 'END', 0, 1, 0, '']]
  const then = await redis.runNamed('index', [ENTRIES, CHANGES], [10, 'i', 0, ...ends, ...kept('c')])
  const salt = erased.slice('["","#'.length, erased.lastIndexOf('.'))
  const expected = [
    ['10', '0', '1 i 0', '1100 1 1 0 '],
    ['10', '1', `5 i~${salt} 0`, '10 10 0 1 ', '10 10 0 1 ', '10 10 0 1 ', '1100 1 1 0 '],
  ]
  const [found, wanted] = [[first, then], expected].map((replies) => JSON.stringify(replies))
  return found === wanted ? undefined : `${found} instead of ${wanted}`
}

/** Checks of the index of blocks. They come first, as they find its mistakes fastest. */
export const blockIndexChecks: readonly Check[] = [
  ...[1, 2, 3].flatMap((seed) =>
    [true, false].map(
      (hasMarker): Check => ({
        name: `index of blocks: ${hasMarker ? 'with' : 'without'} block keys, ${seed}`,
        run: ({ redis }) => walk(redis, seed, hasMarker),
      }),
    ),
  ),
  { name: 'index of blocks: in the first ms of a clock', run: ({ redis }) => early(redis) },
]
