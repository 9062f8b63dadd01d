import { randomFrom } from '../../contract/policies.js'
import type { BucketSpec } from './refunds.js'

/** Requests that overlap, and the units refunded when each ends. */
export interface RefundTraffic {
  readonly title: string
  readonly spec: BucketSpec
  /** The duration, and the mean time between two requests. */
  readonly forMs: number
  readonly everyMs: number
  readonly cost: number
  /** The refunds: for so many in a hundred, this many units at least and at most. */
  readonly back: { readonly percent: number; readonly least: number; readonly most: number }
  /** The duration of a request, at least and at most. */
  readonly takesMs: readonly [number, number]
}

export interface Arrival {
  readonly at: number
  readonly back: number
  readonly endsAt: number
}

/** Deterministic: the same for the same traffic. */
export function arrivals({ title, forMs, everyMs, back, takesMs }: RefundTraffic): Arrival[] {
  const random = randomFrom(title.length)
  const between = (least: number, most: number) => least + random(most - least + 1)
  const found: Arrival[] = []
  for (let at = 0; at < forMs; at += Math.round(-Math.log(1 - random(1e6) / 1e6) * everyMs)) {
    const isBack = random(100) < back.percent
    found.push({ at, back: isBack ? between(back.least, back.most) : 0, endsAt: at + between(...takesMs) })
  }
  return found
}

const tokens = (capacity: number): BucketSpec => ({ algorithm: 'gcra', limit: 100_000, window: 60_000, capacity })
const MINUTES = 60_000

export const TRAFFIC: readonly RefundTraffic[] = [
  {
    title: '100 a minute, only failures counted: 2 requests a second, 9 of 10 good, 0.3 s each',
    spec: { algorithm: 'gcra', limit: 100, window: 60_000, capacity: 100 },
    forMs: 20 * MINUTES,
    everyMs: 500,
    cost: 1,
    back: { percent: 90, least: 1, most: 1 },
    takesMs: [100, 500],
  },
  {
    title: '10 a minute, only failures counted: 1 request a second, 9 of 10 good, 2 s each',
    spec: { algorithm: 'gcra', limit: 10, window: 60_000, capacity: 10 },
    forMs: 20 * MINUTES,
    everyMs: 1000,
    cost: 1,
    back: { percent: 90, least: 1, most: 1 },
    takesMs: [1000, 3000],
  },
  {
    title: '100,000 tokens a minute: 1.2 requests a second, charged 4,000 each, settled for 1,000, 1 to 10 s each',
    spec: tokens(100_000),
    forMs: 20 * MINUTES,
    everyMs: 833,
    cost: 4000,
    back: { percent: 100, least: 2000, most: 4000 },
    takesMs: [1000, 10_000],
  },
  {
    title: 'the same, 5 requests a second: three times what has room',
    spec: tokens(100_000),
    forMs: 10 * MINUTES,
    everyMs: 200,
    cost: 4000,
    back: { percent: 100, least: 2000, most: 4000 },
    takesMs: [1000, 10_000],
  },
  {
    title: 'the same, settled for 200, 10 requests a second: more than has room',
    spec: tokens(100_000),
    forMs: 5 * MINUTES,
    everyMs: 100,
    cost: 4000,
    back: { percent: 100, least: 3600, most: 4000 },
    takesMs: [1000, 10_000],
  },
]
