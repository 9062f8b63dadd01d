import { kindNumber } from '../../../packages/core/src/redis/scripts/script.js'
import type { Cell, KernelName } from '../../../packages/core/src/store/store.js'
import { randomFrom } from '../../contract/policies.js'
import type { Check } from './check.js'
import { type ExchangedCount, exchangedCount } from './exchanged-counts.js'
import type { MutatedRedis } from './mutated-redis.js'

const START = 1_760_000_000_000
/** The additional life of keys with a clock other than that of Redis. */
const SLACK_MS = 3_600_000
/** A script without a reply by then never replies. */
const TIMEOUT_MS = 3000
const STEPS = 120

/** A cell as `exchange` receives it. */
interface ExchangedCell {
  readonly kernel: KernelName
  readonly params: readonly number[]
}

/** A count as a process sends it, with the keys of blocks to check. */
interface SentCount {
  readonly blockKeys: readonly string[]
  readonly key: string
  readonly charges: readonly number[]
}

/** The arguments of lua/exchange.lua. */
function exchangeArgs(
  clock: number | '',
  marker: string | undefined,
  cells: readonly { readonly cell: ExchangedCell; readonly counts: readonly SentCount[] }[],
  isUndeclared: boolean,
): { keys: string[]; args: (string | number)[] } {
  const keys = marker === undefined ? [] : [marker]
  const args: (string | number)[] = [clock, 0, marker === undefined ? 0 : 1, cells.length]
  for (const { cell, counts } of cells) {
    const { kernel, params } = cell
    args.push(kindNumber({ kernel } as Cell), params.length, ...params)
    args.push(counts[0]?.blockKeys.length ?? 0, counts.length)
    for (const { blockKeys, key, charges } of counts) {
      keys.push(...blockKeys, key)
      args.push(charges.length, ...charges)
    }
  }
  if (!isUndeclared) return { keys, args }
  args[1] = args.length + 1
  return { keys: [], args: [...args, ...keys] }
}

/** Reads a reply: the time, and each count in the format of its oracle. */
function exchangeReply(reply: Buffer, kernels: readonly KernelName[]): string[] {
  let at = 0
  const next = (bytes: number) => {
    const high = bytes > 6 ? reply.readUIntBE(at, bytes - 6) * 2 ** 48 : 0
    const value = high + reply.readUIntBE(at + Math.max(0, bytes - 6), Math.min(6, bytes))
    at += bytes
    return value
  }
  const shown = [String(next(6))]
  for (const kernel of kernels) {
    const outcome = next(1)
    if (outcome === 3) shown.push('elsewhere')
    else if (kernel === 'segments') {
      const segment = next(6)
      const counts = Array.from({ length: next(2) }, () => `${next(2)}: ${next(7)}`)
      shown.push(`${outcome} ${segment}, ${counts.join(', ')}`)
    } else shown.push(`${outcome} ${next(7)} since ${next(6)}`)
  }
  if (at !== reply.length) shown.push(`and ${reply.length - at} bytes more`)
  return shown
}

async function run(redis: MutatedRedis, keys: readonly string[], args: readonly (string | number)[]): Promise<Buffer> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${TIMEOUT_MS} ms`)), TIMEOUT_MS)
  })
  try {
    return (await Promise.race([redis.runForBytes('exchange', keys, args), late])) as Buffer
  } finally {
    clearTimeout(timer)
  }
}

type Random = (below: number) => number

/** Charges of a process, also of one whose clock differs. */
function chargesOf({ kernel, params }: ExchangedCell, now: number, below: Random): number[] {
  if (below(5) === 0) return []
  const [limit, windowMs, segments] = params as [number, number, number]
  const ago = () => below(4) * below(Math.ceil(windowMs / 2))
  const units = () => (below(12) === 0 ? 2 ** 31 - below(3) : below(3 * limit) - below(limit))
  const instantOf = () => now - ago() + below(2) * below(30)
  const sinceOf = () => (below(4) === 0 ? now - windowMs + below(3) - 1 : instantOf())
  const nameOf =
    kernel === 'segments' ? () => Math.floor(instantOf() / (windowMs / segments)) - below(2) * below(3) : sinceOf
  return Array.from({ length: 1 + below(3) }, () => [nameOf(), units()]).flat()
}

const CELLS: Readonly<Record<string, readonly ExchangedCell[]>> = {
  'fixed windows': [
    { kernel: 'counter', params: [10, 60_000, 1, 0] },
    { kernel: 'counter', params: [10, 60_000, 1, 1] },
    { kernel: 'counter', params: [10, 60_000, 0, 0] },
  ],
  'sliding windows': [0, 1, 2, 3].map((edge) => ({ kernel: 'segments', params: [10, 60_000, 6, 4 + edge] })),
  'sliding windows that stop at their limit': [0, 1, 2, 3].map((edge) => ({
    kernel: 'segments',
    params: [300, 60_000, 6, edge],
  })),
  'all kinds': [
    { kernel: 'segments', params: [7, 10_000, 10, 7] },
    { kernel: 'counter', params: [7, 10_000, 1, 0] },
  ],
}

/** Several processes send their charges, sometimes late, by a clock that sometimes steps. */
async function walk(redis: MutatedRedis, cells: readonly ExchangedCell[], seed: number): Promise<string | undefined> {
  const below = randomFrom(seed)
  const counts = new Map<string, ExchangedCount>()
  const expiries = new Map<string, { count: number; sentAt: number; repliedAt: number }>()
  let now = START + seed
  for (let step = 0; step < STEPS; step++) {
    const gap = below(100)
    const windowMs = (cells[0] as ExchangedCell).params[1] as number
    if (gap < 40) now += below(3000)
    else if (gap < 50) now += below(2 * windowMs)
    else if (gap < 53) now -= below(2000)
    else if (gap < 55) now -= below(3 * windowMs)
    else if (gap < 56) now += 24 * windowMs
    const names = ['a', 'b', 'c'].filter(() => below(2) === 0)
    if (names.length === 0) continue
    const sent = cells
      .map((cell, c) => ({
        cell,
        counts: names.map(
          (name): SentCount => ({
            blockKeys: [],
            key: `${c}${name}`,
            charges: chargesOf(cell, now, below),
          }),
        ),
      }))
      .filter(() => below(4) > 0)
    if (sent.length === 0) continue
    const expected = [String(now)]
    for (const { cell, counts: own } of sent) {
      for (const { key, charges } of own) {
        const count = counts.get(key) ?? exchangedCount(cell.kernel, cell.params)
        counts.set(key, count)
        expected.push(`1 ${count.exchange(now, charges)}`)
      }
    }
    const { keys, args } = exchangeArgs(now, undefined, sent, below(2) === 0)
    const kernels = sent.flatMap(({ cell, counts: own }) => own.map(() => cell.kernel))
    const sentAt = performance.now()
    const shown = exchangeReply(await run(redis, keys, args), kernels)
    const repliedAt = performance.now()
    if (shown.join(' | ') !== expected.join(' | '))
      return `step ${step}: ${shown.join(' | ')}, not ${expected.join(' | ')}`
    for (const { key } of sent.flatMap(({ counts: own }) => own)) {
      const { lifeMs, expiries: times } = counts.get(key) as ExchangedCount
      const askedAt = performance.now()
      const leftMs = Number(await redis.call('PTTL', key))
      if (lifeMs === 0) {
        if (leftMs !== -2) return `step ${step}: ${key} is still there`
        continue
      }
      const known = expiries.get(key)
      const set = known?.count === times ? known : { count: times, sentAt, repliedAt }
      expiries.set(key, set)
      // For any duration of either command. The milliseconds of Redis and of the test do not begin together.
      const least = lifeMs + SLACK_MS - (performance.now() - set.sentAt) - 3
      const most = lifeMs + SLACK_MS - (askedAt - set.repliedAt) + 3
      if (leftMs < least || leftMs > most) return `step ${step}: ${key} lives ${leftMs} ms, not ${least} to ${most}`
    }
  }
  return undefined
}

const HOURLY: ExchangedCell = { kernel: 'counter', params: [10, 3_600_000, 1, 0] }

/** The reply reports blocks, and charges count all the same. */
async function blocks(redis: MutatedRedis): Promise<string | undefined> {
  await redis.call('SET', 'held', `${START + 1} for a reason`)
  await redis.call('SET', 'over', `${START} for a reason`)
  await redis.call('SET', 'foreign', 'not a block')
  await redis.call('RPUSH', 'list', 'not a block')
  const pairs = [
    ['none', 'held'],
    ['over', 'none'],
    ['held', 'none'],
    ['foreign', 'list'],
    ['list', 'held'],
  ]
  const counts = pairs.map((blockKeys, i): SentCount => ({ blockKeys, key: `count${i}`, charges: [START - 1, i + 1] }))
  const free: SentCount = { blockKeys: [], key: 'free', charges: [START, 2] }
  const charged = [
    { cell: HOURLY, counts },
    { cell: HOURLY, counts: [free] },
  ]
  const idle = charged.map(({ cell, counts: all }) => ({ cell, counts: all.map((one) => ({ ...one, charges: [] })) }))
  const outcomes = async (marker: string | undefined, isUndeclared: boolean, cells: typeof charged) => {
    const { keys, args } = exchangeArgs(START, marker, cells, isUndeclared)
    return exchangeReply(await run(redis, keys, args), new Array(6).fill('counter')).slice(1)
  }
  const expected = (blocked: readonly number[]) =>
    [...pairs, []].map((_, i) => `${blocked[i]} ${i === 5 ? 2 : i + 1} since ${i === 5 ? START : START - 1}`)
  for (const [marker, isUndeclared, cells, blocked] of [
    [undefined, false, charged, [2, 1, 2, 1, 2, 1]],
    ['marker', true, idle, [1, 1, 1, 1, 1, 1]],
    ['marker', false, idle, [1, 1, 1, 1, 1, 1]],
    ['set', true, idle, [2, 1, 2, 1, 2, 1]],
    [undefined, true, idle, [2, 1, 2, 1, 2, 1]],
  ] as const) {
    await redis.call('SET', 'set', '1')
    const shown = (await outcomes(marker, isUndeclared, cells as typeof charged)).join(' | ')
    if (shown !== expected(blocked).join(' | ')) return `with ${marker}: ${shown}`
  }
  return undefined
}

/** An exchange by the clock of Redis. */
async function ownTime(redis: MutatedRedis): Promise<string | undefined> {
  const before = await redis.now()
  const counts = [{ blockKeys: [], key: 'own', charges: [before, 3] }]
  const { keys, args } = exchangeArgs('', undefined, [{ cell: HOURLY, counts }], false)
  const [now, shown] = exchangeReply(await run(redis, keys, args), ['counter'])
  const after = await redis.now()
  const leftMs = Number(await redis.call('PTTL', 'own'))
  if (!(Number(now) >= before && Number(now) <= after)) return `${now} is not from ${before} to ${after}`
  if (shown !== `1 3 since ${before}`) return shown
  // A ms more is known to change nothing: see survivors.json.
  return leftMs <= 3_600_001 && leftMs > 3_590_000 ? undefined : `it lives ${leftMs} ms`
}

export const exchangeChecks: readonly Check[] = [
  { name: 'exchange: blocks', run: ({ redis }) => blocks(redis) },
  { name: "exchange: by Redis's clock", run: ({ redis }) => ownTime(redis) },
  ...Object.entries(CELLS).flatMap(([name, cells]) =>
    [1, 2, 3].map(
      (seed): Check => ({ name: `exchange: ${name}, walk ${seed}`, run: ({ redis }) => walk(redis, cells, seed) }),
    ),
  ),
]
