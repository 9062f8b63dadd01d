import type { HttpContext, KeyFunction, Limit } from '@sluice/core'
import { isThenable, type Later } from '../match/later.js'
import { PrefixMap } from '../match/prefix-map.js'
import { RangeMap } from '../match/range-map.js'
import type { Variant } from './policy.js'

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Context = HttpContext<any>

/** What is different for some clients of a policy. */
export interface Override {
  /** Which of the document it is, from 0, or the table that it is in. */
  readonly index: number | string
  /** Limits by the tier that they are instead of; `undefined` for those of a policy without tiers. */
  readonly limits: ReadonlyMap<string | undefined, readonly Limit[]>
  /** When it ends, in ms since 1970. */
  readonly until: number | undefined
}

/** What an override is for; of several for one request, the highest counts. */
export const RANK = { none: 0, prefix: 1, range: 2, address: 3, exact: 4 } as const

/** What of a request's overrides counts. */
export interface FoundOverride {
  readonly override: Override | undefined
  readonly rank: number
}

const NONE: FoundOverride = { override: undefined, rank: RANK.none }

/** Clients of one kind. */
interface OfKind {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly key: KeyFunction<any>
  readonly exact: Map<string, Override>
  readonly prefixes: PrefixMap<Override>
}

/** The overrides of one policy. An exact one counts before a range, the smallest one first, and that before a prefix, the longest one first. */
export class Overrides {
  readonly #kinds = new Map<string, OfKind>()
  readonly #ranges = new RangeMap<Override>()
  /** Those of a single address. */
  readonly #addresses = new Set<Override>()
  readonly #variants = new OverriddenVariants()

  // biome-ignore lint/suspicious/noExplicitAny: as above
  ofKind(kind: string, key: KeyFunction<any>): Pick<OfKind, 'exact' | 'prefixes'> {
    let of = this.#kinds.get(kind)
    if (!of) {
      of = { key, exact: new Map(), prefixes: new PrefixMap() }
      this.#kinds.set(kind, of)
    }
    return of
  }

  /** Whether it was free. */
  addRange(range: Parameters<RangeMap<Override>['add']>[0], override: Override): boolean {
    if (range.bits === 8 * range.bytes.length) this.#addresses.add(override)
    return this.#ranges.add(range, override)
  }

  /** The variant for a request: `base`, where no override is for it. A promise only where a key is one. */
  choose(base: Variant, context: Context): Later<Variant> {
    const found = this.find(context)
    if (found instanceof Promise) return found.then(({ override }) => this.#variants.of(override, base))
    return this.#variants.of(found.override, base)
  }

  /** The override for a request. A promise only where a key is one. */
  find(context: Context): Later<FoundOverride> {
    if (this.#kinds.size === 0) return this.#pick([], context)
    const values: unknown[] = []
    let isLate = false
    for (const { key } of this.#kinds.values()) {
      const value: unknown = key(context.request, context)
      isLate ||= isThenable(value)
      values.push(value)
    }
    if (isLate) return Promise.all(values).then((known) => this.#pick(known, context))
    return this.#pick(values, context)
  }

  #pick(values: readonly unknown[], { ip }: Context): FoundOverride {
    const now = Date.now()
    const exact = this.#exact(values, now)
    if (exact) return { override: exact, rank: RANK.exact }
    const range = inForce(this.#ranges.find(ip), now)
    if (range) return { override: range, rank: this.#addresses.has(range) ? RANK.address : RANK.range }
    const prefix = this.#longest(values, now)
    return prefix ? { override: prefix, rank: RANK.prefix } : NONE
  }

  #exact(values: readonly unknown[], now: number): Override | undefined {
    let at = 0
    for (const { exact } of this.#kinds.values()) {
      const value = values[at++]
      if (value === undefined || value === null) continue
      const found = inForce(exact.get(String(value)), now)
      if (found) return found
    }
    return undefined
  }

  #longest(values: readonly unknown[], now: number): Override | undefined {
    let at = 0
    for (const { prefixes } of this.#kinds.values()) {
      const value = values[at++]
      if (value === undefined || value === null) continue
      const found = inForce(prefixes.find(String(value)), now)
      if (found) return found
    }
    return undefined
  }
}

/** One object for an override and what it is of, so that one limiter is made for it. */
export class OverriddenVariants {
  readonly #variants = new WeakMap<Override, Map<Variant, Variant>>()

  of(override: Override | undefined, base: Variant): Variant {
    if (!override) return base
    let variants = this.#variants.get(override)
    if (!variants) {
      variants = new Map()
      this.#variants.set(override, variants)
    }
    let variant = variants.get(base)
    if (!variant) {
      // A tier without a limit of that name stays as it is.
      const limits = override.limits.get(base.tier)
      variant = limits ? { ...base, limits, override: override.index } : base
      variants.set(base, variant)
    }
    return variant
  }
}

function inForce(override: Override | undefined, now: number): Override | undefined {
  return override && (override.until === undefined || override.until > now) ? override : undefined
}
