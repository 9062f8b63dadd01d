import { type Check, different, PASSED_MS, pairsOf } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

/** Scripts that decide nothing, run as they are: looks at permits, refusals by identity, and keys that are erased. */

const NOW = 1_760_000_000_000

/** Permits that are held, by the ms until they end. One that ends now is free. */
const HELD: Record<string, readonly number[]> = {
  '{a}:none': [],
  '{a}:ended': [-1, 0],
  '{a}:one': [1, 0],
  '{a}:two': [1, 500],
  '{a}:three': [1, 2, 3],
}

async function wrongPermits(redis: MutatedRedis): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  for (const [key, ends] of Object.entries(HELD)) {
    for (const [n, ms] of ends.entries()) await redis.call('ZADD', key, NOW + ms, `permit-${n}`)
  }
  await redis.call('SET', '{a}:text', 'none')
  const keys = [...Object.keys(HELD), '{a}:text']
  const heldBy = (key: string) => (HELD[key] ?? []).filter((ms) => ms > 0).length
  for (const max of [0, 1, 2, 3]) {
    const expected = keys.map((key) => (heldBy(key) > max && key !== '{a}:text' ? '0' : '1')).join('')
    const maxima = keys.map(() => max)
    const declared = await redis.runNamed('permits', keys, [NOW, ...maxima])
    const undeclared = await redis.runNamed('permits', [], [NOW, ...maxima, ...keys])
    const failure = different(`at most ${max}`, [declared, undeclared].map(String), [expected, expected])
    if (failure) return failure
  }
  // Each key has a maximum of its own.
  const apart = await redis.runNamed('permits', ['{a}:two', '{a}:three'], [NOW, 2, 1])
  return different('maxima by key', String(apart), '10')
}

const SLICES = [
  { counts: '{r}:1m', sums: '{r}:1m:sums', lifeMs: 70_000 },
  { counts: '{r}:1h', sums: '{r}:1h:sums', lifeMs: 4_000_000 },
]
const KEYS = SLICES.flatMap(({ counts, sums }) => [counts, sums])

/** A sketch as the script says it keeps one: counts, all refusals, and how much too low counts may be. */
class Sketch {
  readonly #stored: number
  #counts = new Map<string, number>()
  #refusals = 0
  #error = 0

  constructor(stored: number) {
    this.#stored = stored
  }

  add(refusals: number, error: number, counts: readonly (readonly [string, number])[]): void {
    for (const [identity, count] of counts) this.#counts.set(identity, (this.#counts.get(identity) ?? 0) + count)
    const sorted = [...this.#counts.values()].sort((a, b) => b - a)
    const lost = sorted.length > 2 * this.#stored ? (sorted[this.#stored] as number) : 0
    if (lost > 0) {
      this.#counts = new Map(
        [...this.#counts].filter(([, count]) => count > lost).map(([identity, count]) => [identity, count - lost]),
      )
    }
    this.#refusals += refusals
    this.#error += error + lost
  }

  get text(): string {
    return textOf([this.#refusals, this.#error, ...[...this.#counts].flat()].map(String))
  }
}

/** A slice as text, its identities by name. */
function textOf([refusals, error, ...counts]: readonly string[]): string {
  return [refusals, error, ...pairsOf(counts)].join(' ')
}

async function wrongSlice(redis: MutatedRedis, sketch: Sketch, when: string): Promise<string | undefined> {
  for (const { counts, sums, lifeMs } of SLICES) {
    const slice = (await redis.runNamed('refusals-slice', [counts, sums], [])) as unknown[]
    const failure = different(`${counts} ${when}`, textOf(slice.map(String)), sketch.text)
    if (failure) return failure
    for (const key of [counts, sums]) {
      const left = Number(await redis.call('PTTL', key))
      if (left > lifeMs || left < lifeMs - PASSED_MS) return `${key} ${when} lives ${left} ms, not ${lifeMs}`
    }
  }
  return undefined
}

async function wrongRefusals(redis: MutatedRedis): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  const empty = (await redis.runNamed('refusals-slice', KEYS.slice(0, 2), [])) as unknown[]
  const ofNothing = different('a slice of nothing', empty.map(String), ['0', '0'])
  if (ofNothing) return ofNothing
  const stored = 3
  const sketch = new Sketch(stored)
  const rounds: readonly (readonly [number, number, readonly (readonly [string, number])[]])[] = [
    [
      7,
      0,
      [
        ['ann', 5],
        ['bob', 2],
      ],
    ],
    // As many as fit without a loss, twice what is stored.
    [
      12,
      2,
      [
        ['cem', 4],
        ['dan', 3],
        ['eve', 1],
        ['fay', 9],
      ],
    ],
    // One more: all counts are lowered by the largest of those that go.
    [
      30,
      1,
      [
        ['gus', 8],
        ['ann', 2],
      ],
    ],
    [
      3,
      0,
      [
        ['ann', 1],
        ['hal', 2],
      ],
    ],
    [
      9,
      4,
      [
        ['ida', 6],
        ['jon', 7],
        ['kim', 1],
        ['lea', 1],
      ],
    ],
  ]
  for (const [n, [refusals, error, counts]] of rounds.entries()) {
    sketch.add(refusals, error, counts)
    // Each round gives the keys their life anew.
    for (const key of KEYS) await redis.call('PEXPIRE', key, 20_000)
    const lives = SLICES.map(({ lifeMs }) => lifeMs)
    await redis.runNamed('refusals', KEYS, [stored, refusals, error, ...lives, ...counts.flat()])
    const failure = await wrongSlice(redis, sketch, `in round ${n + 1}`)
    if (failure) return failure
  }
  return undefined
}

async function wrongForget(redis: MutatedRedis): Promise<string | undefined> {
  const cases = [
    { member: '', expected: ['{f}:other'] },
    { member: 'ann', expected: ['bob', '{f}:other', '{f}:x:set', '{f}:x:text'] },
  ]
  for (const { member, expected } of cases) {
    await redis.call('FLUSHALL')
    await redis.call('SET', '{f}:other', 'ann')
    await redis.call('SET', '{f}:x:text', 'ann')
    await redis.call('ZADD', '{f}:x:set', 1, 'ann', 2, 'bob')
    let cursor = '0'
    do {
      cursor = String(await redis.runNamed('forget', ['{f}:other'], [cursor, '{f}:x:*', member]))
    } while (cursor !== '0')
    const left = ((await redis.call('KEYS', '*')) as unknown[]).map(String)
    const members = ((await redis.call('ZRANGE', '{f}:x:set', 0, -1)) as unknown[]).map(String)
    const failure = different(`without ${member || 'the keys'}`, [...left, ...members].sort(), expected)
    if (failure) return failure
  }
  return undefined
}

const CHANGES = '{c}:changes'
const CHANGES_LIFE_MS = 400_000

async function wrongChanges(redis: MutatedRedis): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  const run = (name: string, args: readonly (string | number)[]) => redis.runNamed(name, [CHANGES], args)
  const add = async (text: string, now: string | number = NOW, max = 3) =>
    String(await run('change', [now, CHANGES_LIFE_MS, max, text]))
  const replace = async (number: number, after: string, before: string) =>
    Number(await run('change', [NOW, CHANGES_LIFE_MS, number, after, before]))
  const read = (args: readonly (string | number)[]) =>
    redis.runForBytes('changes-page', [CHANGES], args) as Promise<[unknown, unknown[]]>
  const page = async (...args: readonly (string | number)[]) => (await read(args))[1].map(String)
  const below = async (...args: readonly (string | number)[]) => String((await read(args))[0])
  const wrongLife = async (when: string) => {
    const left = Number(await redis.call('PTTL', CHANGES))
    const isRight = left <= CHANGES_LIFE_MS && left >= CHANGES_LIFE_MS - PASSED_MS
    return isRight ? undefined : `changes ${when} live ${left} ms, not ${CHANGES_LIFE_MS}`
  }
  /** Members that are not ours, above and below the entries 3 to 5. */
  const wrongBesideForeign = async () => {
    await redis.call('ZADD', CHANGES, 'inf', 'x', 1e15, 'd6:1:t', 6, '6:1:t', 0, 'y', '-inf', 'z')
    const found = [await page('', 2), [await below('', 3)], [await below('', 2)]]
    await redis.call('ZREM', CHANGES, 'x', 'd6:1:t', '6:1:t', 'y', 'z')
    return different('pages beside members that are not ours', found, [[entry(4), entry(5)], [''], ['3']])
  }
  const entry = (number: number, state = 'b', at: string | number = NOW) => `${state}${number}:${at}:t${number}`
  const ofNone = different('a page of nothing', [await page('', 5), await page(3, 5)], [[], []])
  if (ofNone) return ofNone
  for (const n of [1, 2, 3, 4, 5]) {
    const failure = different(`entry ${n}`, await add(`t${n}`), entry(n)) ?? (await wrongLife(`after entry ${n}`))
    if (failure) return failure
    const all = Array.from({ length: Math.min(n, 3) }, (_, i) => entry(n - Math.min(n, 3) + 1 + i))
    const wrongAll = different(`entries after ${n}`, await page('', 9), all)
    if (wrongAll) return wrongAll
    await redis.call('PEXPIRE', CHANGES, 20_000)
  }
  const pages = [await page('', 2), await page(5, 1), await page(4, 2), await page(3, 2)]
  const wrongPages = different('pages', pages, [[entry(4), entry(5)], [entry(4)], [entry(3)], []])
  if (wrongPages) return wrongPages
  const next = [await below('', 2), await below(5, 1), await below(4, 2), await below('', 3)]
  const wrongNext = different('numbers of the next pages', next, ['3', '3', '', ''])
  if (wrongNext) return wrongNext
  const wrongForeign = await wrongBesideForeign()
  if (wrongForeign) return wrongForeign
  const replaced = [await replace(4, entry(4, 'd'), entry(4)), await replace(4, entry(4, 'f'), entry(4))]
  const wrongReplaced = different('replaced', [replaced, await page(5, 1)], [[1, 0], [entry(4, 'd')]])
  if (wrongReplaced) return wrongReplaced
  // The only entry: the set is made anew, with its life.
  await redis.call('FLUSHALL')
  const first = await add('t1', '')
  const passed = Math.abs(Number(first.split(':')[1]) - (await redis.now()))
  if (!(passed < PASSED_MS)) return `the time of an entry differs by ${passed} ms`
  await replace(1, entry(1, 'd'), first)
  return (
    (await wrongLife('after the only one was replaced')) ??
    different('numbers go on', await add('t2'), entry(2)) ??
    different('the first entry is on a page', await below('', 1), '1')
  )
}

export const smallScriptChecks: readonly Check[] = [
  { name: 'permits: held ones leave room by their maximum', run: ({ redis }) => wrongPermits(redis) },
  { name: 'refusals: a slice is the sketch that it should be', run: ({ redis }) => wrongRefusals(redis) },
  { name: 'forget: keys, or a member of sorted sets', run: ({ redis }) => wrongForget(redis) },
  { name: 'changes: numbered entries, the last ones, by page', run: ({ redis }) => wrongChanges(redis) },
]
