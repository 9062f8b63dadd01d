import type { Limit } from '@sluice/core'
import type { Interval, RedisCost } from '../report.js'

/** CPU of Redis in µs: the first and the third quartile of rounds. */
type Spread = readonly [low: number, high: number]

/**
 * CPU of Redis for a decision, by its limits on one key: the tables of `npm run bench -- growth` in bench/results.md. Between two
 * sizes, both bound it. There is nothing beyond them.
 */
export const CPU_BY_LIMITS: Readonly<Record<string, readonly (readonly [limits: number, spread: Spread])[]>> = {
  slidingLog: [
    [1, [5.16, 5.73]],
    [2, [7.4, 8.53]],
    [4, [7.63, 9.19]],
    [8, [12.6, 17.4]],
  ],
  gcra: [
    [1, [3.73, 5.37]],
    [2, [10.6, 12.3]],
    [4, [13.4, 17.4]],
    [8, [24.3, 28.2]],
  ],
}

/** How much more CPU an exact log takes with so many keys than with a thousand: of the same bench. */
export const MORE_BY_KEYS: readonly (readonly [keys: number, more: Spread])[] = [
  [1000, [1, 1]],
  [10_000, [0.99, 1.23]],
  [100_000, [1.04, 1.28]],
  [1_000_000, [1.29, 1.46]],
]

/** Bytes of a key, and of each further entry of a log: the table of `npm run bench -- redis-memory`. */
export const BYTES: Readonly<Record<string, readonly [first: number, further: number]>> = {
  slidingLog: [245, 5.12],
  gcra: [197, 0],
  fixedWindow: [197, 0],
}

/** Decisions on the same number of limits of the same algorithms. */
export interface DecisionCount {
  readonly algorithms: readonly string[]
  decisions: number
}

/** Decisions a second on one key from which a lease is worth it. */
const HOT_PER_SECOND = 100
const MAX_HOT = 20

/** What the decisions of a log would cost Redis. */
export function redisCost(
  counts: readonly DecisionCount[],
  limits: readonly { readonly limit: Limit; readonly keys: number }[],
  busiest: readonly { readonly identity: string; readonly requests: number }[],
  durationMs: number,
): RedisCost {
  const keys = limits.reduce((most, limit) => Math.max(most, limit.keys), 0)
  const seconds = Math.max(1, durationMs / 1000)
  return {
    commands: counts.reduce((sum, { decisions }) => sum + decisions, 0),
    cpuMs: sumOf(counts.map((count) => cpuOf(count, keys))),
    bytes: sumOf(limits.map(bytesOf)),
    hot: busiest
      .map(({ identity, requests }) => ({ identity, perSecond: requests / seconds }))
      .filter(({ perSecond }) => perSecond >= HOT_PER_SECOND)
      .sort((a, b) => b.perSecond - a.perSecond)
      .slice(0, MAX_HOT),
  }
}

function cpuOf({ algorithms, decisions }: DecisionCount, keys: number): Interval | undefined {
  const [algorithm = ''] = algorithms
  const table = algorithms.every((each) => each === algorithm) ? CPU_BY_LIMITS[algorithm] : undefined
  const us = table && between(table, algorithms.length)
  if (!us) return undefined
  const more = algorithm === 'slidingLog' ? between(MORE_BY_KEYS, Math.max(1000, keys)) : ONCE
  if (!more) return undefined
  return { min: (decisions * us[0] * more[0]) / 1000, max: (decisions * us[1] * more[1]) / 1000 }
}

const ONCE: Spread = [1, 1]

/** The spread at a size: of both neighbours, where it is between them. Undefined beyond the table. */
function between(table: readonly (readonly [size: number, spread: Spread])[], size: number): Spread | undefined {
  const below = table.findLast(([each]) => each <= size)
  const above = table.find(([each]) => each >= size)
  return below && above && [Math.min(below[1][0], above[1][0]), Math.max(below[1][1], above[1][1])]
}

function bytesOf({ limit, keys }: { readonly limit: Limit; readonly keys: number }): Interval | undefined {
  const sizes = BYTES[limit.algorithm]
  if (!sizes || typeof limit.limit !== 'number') return undefined
  const [first, further] = sizes
  return { min: keys * first, max: keys * (first + further * Math.max(0, limit.limit - 1)) }
}

/** Undefined if a part is. */
function sumOf(parts: readonly (Interval | undefined)[]): Interval | undefined {
  let [min, max] = [0, 0]
  for (const part of parts) {
    if (!part) return undefined
    min += part.min
    max += part.max
  }
  return { min, max }
}
