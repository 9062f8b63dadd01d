import { ceilingOf } from '../../../packages/core/src/kernels/ceiling.js'
import { instant, isAhead } from '../../../packages/core/src/kernels/clock.js'
import * as counter from '../../../packages/core/src/kernels/counter.js'
import * as window from '../../../packages/core/src/kernels/segments.js'
import type { KernelName } from '../../../packages/core/src/store/store.js'

/** The count under one exchanged key as the documentation specifies it, without the encoding of Redis. */
export interface ExchangedCount {
  /** Adds the charges of a process, and returns the reply to it as text. */
  exchange(now: number, charges: readonly number[]): string
  /** The life of the key in ms, from the last time its expiry was set; 0 without a key. */
  readonly lifeMs: number
  /** The number of times its expiry was set. */
  readonly expiries: number
}

abstract class Count {
  lifeMs = 0
  expiries = 0

  protected expireIn(ms: number): void {
    this.lifeMs = ms
    this.expiries++
  }
}

class Counter extends Count implements ExchangedCount {
  readonly #windowMs: number
  readonly #most: number
  readonly #byClock: boolean
  #stored: { readonly count: number; readonly start: number } | undefined

  constructor([limit, windowMs, countsRefusals, byClock]: readonly number[]) {
    super()
    this.#windowMs = windowMs as number
    this.#most = countsRefusals === 1 ? ceilingOf(limit as number, windowMs as number) : (limit as number)
    this.#byClock = byClock === 1
  }

  exchange(now: number, charges: readonly number[]): string {
    const stored = this.#stored
    const at = stored ? instant(stored.start, now, this.#windowMs) : now
    const holds = stored !== undefined && at < stored.start + this.#windowMs
    let count = holds ? stored.count : 0
    let start = holds && stored.start <= at ? stored.start : counter.startOf(at, this.#windowMs, this.#byClock)
    for (const [since, units] of pairs(charges)) {
      if (since + this.#windowMs <= now) continue
      // The first unit opens the window.
      if (count === 0 && !this.#byClock) start = Math.min(now, since)
      count = clamp(count + units, 0, this.#most)
    }
    const heals = stored !== undefined && isAhead(stored.start, now, this.#windowMs)
    if (charges.length > 0 ? stored || count > 0 : heals) this.#write(count, start, now)
    return `${count} since ${start}`
  }

  #write(count: number, start: number, now: number): void {
    if (count === 0) {
      this.#stored = undefined
      this.lifeMs = 0
      return
    }
    if (this.#stored?.start !== start) this.expireIn(start + this.#windowMs - now)
    this.#stored = { count, start }
  }
}

class Segments extends Count implements ExchangedCount {
  readonly #windowMs: number
  readonly #segments: number
  readonly #segmentMs: number
  readonly #edge: number
  readonly #most: number
  /** Counts by their distance from the newest segment. */
  #counts: number[] | undefined
  #newest = 0

  constructor([limit, windowMs, segments, edge]: readonly number[]) {
    super()
    this.#windowMs = windowMs as number
    this.#segments = segments as number
    this.#segmentMs = (windowMs as number) / (segments as number)
    const withRefusals = (edge as number) >= window.WITH_REFUSALS
    this.#edge = withRefusals ? (edge as number) - window.WITH_REFUSALS : (edge as number)
    this.#most = withRefusals ? ceilingOf(limit as number, windowMs as number) : (limit as number)
  }

  exchange(now: number, charges: readonly number[]): string {
    const isStored = this.#counts !== undefined
    const at = isStored ? instant(this.#newest * this.#segmentMs, now, this.#windowMs) : now
    const segment = Math.floor(at / this.#segmentMs)
    const heals = isStored && isAhead(this.#newest * this.#segmentMs, now, this.#windowMs)
    const passed = isStored ? Math.max(0, segment - this.#newest) : 0
    const all = [...new Array<number>(passed).fill(0), ...(this.#counts ?? [])]
    const counts = Array.from({ length: this.#segments + 1 }, (_, k) => all[k] ?? 0)
    const inside = () => counts.slice(0, -1).reduce((sum, units) => sum + units, 0)
    // The weight of an edge depends on the instant, so it counts in full.
    if (heals && this.#edge >= window.WEIGHTED_DOWN) {
      const edge = counts[this.#segments] as number
      const moved = clamp(edge, 0, this.#most - inside())
      counts[this.#segments] = 0
      counts[this.#segments - 1] = (counts[this.#segments - 1] as number) + moved
    }
    for (const [chargedIn, units] of pairs(charges)) {
      const k = Math.max(0, segment - chargedIn)
      if (k > this.#segments) continue
      const counted = counts[k] as number
      const room = this.#most - (k < this.#segments ? inside() : counted)
      counts[k] = counted + Math.max(-counted, Math.min(units, room))
    }
    if (charges.length > 0 || heals) this.#write(counts, segment, at, now)
    const shown = counts.flatMap((units, k) => (units > 0 ? [`${k}: ${units}`] : []))
    return `${segment}, ${shown.join(', ')}`
  }

  #write(counts: number[], segment: number, at: number, now: number): void {
    const offset = at - segment * this.#segmentMs
    if (window.resetAfter(counts, offset, this.#segments, this.#segmentMs, this.#edge) + at - now > 0) {
      this.#counts = counts
      this.#newest = segment
      this.expireIn(this.#windowMs + this.#segmentMs - offset + at - now)
    } else {
      this.#counts = undefined
      this.lifeMs = 0
    }
  }
}

export function exchangedCount(kernel: KernelName, params: readonly number[]): ExchangedCount {
  if (kernel === 'counter') return new Counter(params)
  return new Segments(params)
}

function* pairs(charges: readonly number[]): Generator<[number, number]> {
  for (let i = 0; i < charges.length; i += 2) yield [charges[i] as number, charges[i + 1] as number]
}

const clamp = (value: number, least: number, most: number) => Math.max(least, Math.min(most, value))
