import { randomFrom } from '../../contract/policies.js'
import type { Check } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

/** The additional life of entries in the index with a clock other than that of Redis. */
const SLACK_MS = 3_600_000
const DAY_MS = 86_400_000
/** The longest time between an execution and the reading of a key's remaining life. */
const PASSED_MS = 5000
const STEPS = 220

const [ENTRIES, CHANGES, MARKER] = ['{s}:entries', '{s}:changes', '{s}:marker']
const FIELDS = ['p:ip=1', 'p:ip=2', 'q:ip=1', '.store:user=ann', 'p:user=bob']
const blockKey = (field: string) => `{s}:block:${field}`
const strikesKey = (field: string) => `{s}:strikes:${field}`

interface Entry {
  readonly version: number
  readonly ends: number
  readonly since: number
  readonly times: number
  readonly isEnded: boolean
  readonly reason: string
}

type Op = readonly [
  field: string,
  op: 'BLOCK' | 'KEEP' | 'END',
  first: number,
  second: number,
  third: number,
  reason: string,
]

type Wrong = (what: string, got: unknown, expected: unknown) => string | undefined

/** One shard of the index of blocks, as lua/index.lua describes it. */
class Shard {
  /** Undefined where the shard is missing or incomplete. */
  head: { version: number; incarnation: string; epoch: number } | undefined
  readonly entries = new Map<string, Entry>()
  /** The epoch in the rest of an incomplete shard. */
  epochLeft = 0
  /** The lives of the hash and the sorted set, in ms. */
  life = 0
  changesLife = 0
  markerLife = 0
  /** The values of block keys. */
  readonly blocks = new Map<string, string>()

  change(now: number, incarnation: string, known: number, ops: readonly Op[], hasMarker: boolean): string[] {
    if (!this.head) {
      this.entries.clear()
      this.life = 0
      this.changesLife = 0
    }
    this.head ??= { version: 0, incarnation, epoch: this.epochLeft }
    this.epochLeft = 0
    const { head } = this
    head.epoch = Math.max(head.epoch, known)
    const reply = [String(now), String(head.version), '']
    for (let look = 0; look < 2; look++) this.#sweep(now)
    let needed = Math.max(1000, known + DAY_MS - now)
    for (const op of ops) {
      const { text, life } = this.#change(now, op, hasMarker)
      reply.push(text)
      needed = Math.max(needed, life)
    }
    this.life = Math.max(this.life, needed)
    this.changesLife = Math.max(this.changesLife, needed)
    this.#forgetChanges()
    reply[2] = this.headText
    return reply
  }

  get headText(): string {
    const { version, incarnation, epoch } = this.head as NonNullable<Shard['head']>
    return `${version} ${incarnation} ${epoch}`
  }

  page(now: number, after: number, most: number, field: string): string[] {
    if (!this.head) return [String(now), '', '1']
    const isAsKnown = field === '' || (this.entries.get(field)?.version ?? -1) === after
    const found = this.#byVersion.filter(([, { version }]) => version > after).slice(0, most)
    const changes = found.flatMap(([name, entry]) => [String(entry.version), name, textOf(entry)])
    return [String(now), this.headText, isAsKnown ? '1' : '0', ...changes]
  }

  clear(now: number, incarnation: string, most: number): string[] {
    const fields = this.#byVersion.slice(0, most).map(([field]) => field)
    for (const field of fields) this.entries.delete(field)
    const { version, incarnation: own } = this.head ?? { version: 0, incarnation }
    this.head = { version: version + 1, incarnation: own, epoch: now }
    this.life = Math.max(DAY_MS, this.life)
    this.#forgetChanges()
    return [String(now), ...fields]
  }

  get #byVersion(): [string, Entry][] {
    return [...this.entries].sort(([, a], [, b]) => a.version - b.version)
  }

  #sweep(now: number): void {
    const { size } = this.entries
    if (size === 0) return
    const [field, { ends }] = this.#byVersion[(this.head?.version ?? 0) % size] as [string, Entry]
    if (ends + SLACK_MS <= now) this.entries.delete(field)
    this.#forgetChanges()
  }

  /** Redis removes an empty sorted set. */
  #forgetChanges(): void {
    if (this.entries.size === 0) this.changesLife = 0
  }

  #change(
    now: number,
    [field, op, first, second, third, reason]: Op,
    hasMarker: boolean,
  ): { text: string; life: number } {
    const head = this.head as NonNullable<Shard['head']>
    const known = this.entries.get(field)
    const next = this.#entryFor(now, [field, op, first, second, third, reason], known, head)
    if (next) {
      head.version++
      this.entries.set(field, { ...next, version: head.version })
    }
    if (hasMarker && op === 'END') {
      if (third === 0 || (next && known)) this.blocks.delete(field)
    } else if (hasMarker && next) {
      this.blocks.set(field, `${next.ends} ${next.reason}`)
      this.markerLife = Math.max(this.markerLife, next.ends - now + SLACK_MS)
    }
    const held = next ?? known
    return { text: `${next ? 1 : 0}${held ? textOf(held) : ''}`, life: next ? next.ends - now + SLACK_MS : 0 }
  }

  #entryFor(
    now: number,
    [, op, first, second, third, reason]: Op,
    known: Entry | undefined,
    { epoch }: { epoch: number },
  ): Omit<Entry, 'version'> | undefined {
    const times = known?.times ?? 0
    if (op === 'BLOCK')
      return {
        ends: second > 0 ? second : now + first,
        since: Math.max(now, epoch + 1, known ? known.since + (known.isEnded ? 1 : 0) : 0),
        times: times + 1,
        isEnded: false,
        reason,
      }
    if (op === 'KEEP') {
      const isNewer = first > now && second > epoch && (!known || known.since < second)
      const merged = { ends: first, since: second, times: third > 0 ? third : times + 1, isEnded: false, reason }
      return isNewer ? merged : undefined
    }
    const ends = Math.max(first, second > 0 ? 0 : (known?.ends ?? 0))
    if (ends + SLACK_MS <= now || (third > 0 && known && known.since > third)) return undefined
    return {
      ends,
      since: third > 0 ? third : Math.max(now, epoch + 1, known?.since ?? 0),
      times,
      isEnded: true,
      reason,
    }
  }
}

function textOf({ ends, since, times, isEnded, reason }: Omit<Entry, 'version'>): string {
  return `${ends} ${since} ${times} ${isEnded ? 1 : 0} ${reason}`
}

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
      const got = await redis.runNamed('index', all, [now, incarnation, epoch, ...ops.flat()])
      failure =
        wrong('change', got, shard.change(now, incarnation, epoch, ops, hasMarker)) ??
        (await unlike(redis, shard, ops, now, hasMarker, wrong))
    } else if (what < 10) {
      const after = random((shard.head?.version ?? 0) + 2)
      const [most, field] = [1 + random(4), random(2) === 0 ? '' : (FIELDS[random(FIELDS.length)] as string)]
      const got = await redis.runNamed('index-page', [ENTRIES, CHANGES], [now, after, most, field])
      failure = wrong('page', got, shard.page(now, after, most, field))
    } else {
      const most = 1 + random(3)
      const got = await redis.runNamed('index-clear', [ENTRIES, CHANGES], [now, incarnation, most])
      failure = wrong('clear', got, shard.clear(now, incarnation, most)) ?? (await livesOf(redis, shard, wrong))
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
  const reason = ['', `r${i}`, 'a reason 1 2'][random(3)] as string
  const near = () => now + random(7) - 3
  switch (random(3)) {
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
      const since = now - random(4) * random(50_000)
      return [field, 'KEEP', random(2) === 0 ? near() : now + random(9000), since, random(3), reason]
    }
    default: {
      const until = [0, near() - SLACK_MS, now + random(4000)][random(3)] as number
      const known = entries.get(field)?.since ?? now
      return [field, 'END', until, random(2), [0, 0, known, known - 1, now][random(5)] as number, '']
    }
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

/** The failure of the keys that a change has written, if any. */
async function unlike(
  redis: MutatedRedis,
  shard: Shard,
  ops: readonly Op[],
  now: number,
  hasMarker: boolean,
  wrong: Wrong,
) {
  const failure = await livesOf(redis, shard, wrong)
  if (failure || !hasMarker) return failure
  for (const [field, op, , , third] of ops) {
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
      if (op === 'END' && third === 0 && strikes !== 0) return `strikes of ${field} stay`
      const expected = Number(held?.split(' ')[0]) - now + SLACK_MS
      if (op === 'BLOCK' && (Number(left) > expected || Number(left) < expected - PASSED_MS))
        return `block of ${field} lives ${left} ms, not ${expected}`
    }
  }
  const left = Number(await redis.call('PTTL', MARKER))
  return shard.markerLife > 0 && (left > shard.markerLife || left < shard.markerLife - 10 * PASSED_MS)
    ? `the marker lives ${left} ms, not ${shard.markerLife}`
    : undefined
}

async function livesOf(redis: MutatedRedis, shard: Shard, wrong: Wrong): Promise<string | undefined> {
  const lives =
    shard.entries.size > 0 ? { [ENTRIES]: shard.life, [CHANGES]: shard.changesLife } : { [ENTRIES]: shard.life }
  for (const [key, life] of Object.entries(lives)) {
    const left = Number(await redis.call('PTTL', key))
    if (left > life || left < life - 10 * PASSED_MS) return wrong(`life of ${key}`, left, life)
  }
  return undefined
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
]
