import type { HttpContext, KeyFunction, Limit } from '@sluice/core'
import { PrefixMap } from '../match/prefix-map.js'
import { RangeMap } from '../match/range-map.js'
import type { Variant } from './policy.js'

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Context = HttpContext<any>

/** What is different for some clients of a policy. */
export interface Override {
  /** Which of the document it is, from 0. */
  readonly index: number
  /** Limits by the tier that they are instead of; `undefined` for those of a policy without tiers. */
  readonly limits: ReadonlyMap<string | undefined, readonly Limit[]>
  /** When it ends, in ms since 1970. */
  readonly until: number | undefined
}

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
  readonly #variants = new Map<Override, Map<Variant, Variant>>()

  // biome-ignore lint/suspicious/noExplicitAny: as above
  ofKind(kind: string, key: KeyFunction<any>): Pick<OfKind, 'exact' | 'prefixes'> {
    let of = this.#kinds.get(kind)
    if (!of) {
      of = { key, exact: new Map(), prefixes: new PrefixMap() }
      this.#kinds.set(kind, of)
    }
    return of
  }

  get ranges(): RangeMap<Override> {
    return this.#ranges
  }

  /** The variant for a request: `base`, where no override is for it. A promise only where a key is one. */
  choose(base: Variant, context: Context): Variant | Promise<Variant> {
    if (this.#kinds.size === 0) return this.#pick(base, [], context)
    const values: unknown[] = []
    let isLate = false
    for (const { key } of this.#kinds.values()) {
      const value: unknown = key(context.request, context)
      isLate ||= typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'
      values.push(value)
    }
    if (isLate) return Promise.all(values).then((known) => this.#pick(base, known, context))
    return this.#pick(base, values, context)
  }

  #pick(base: Variant, values: readonly unknown[], { ip }: Context): Variant {
    const now = Date.now()
    const found = this.#exact(values, now) ?? inForce(this.#ranges.find(ip), now) ?? this.#longest(values, now)
    return found ? this.#variantOf(found, base) : base
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

  /** One object for an override and what it is of, so that one limiter is made for it. */
  #variantOf(override: Override, base: Variant): Variant {
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
