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
  /** The variant that it makes of the one of its policy, or of the first of its tiers that came. */
  firstBase?: Variant
  firstVariant?: Variant
  /** Those of other tiers. */
  others?: Map<Variant, Variant>
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
  /** The kind, where there is one alone: nearly always. */
  #only: OfKind | undefined
  readonly #ranges = new RangeMap<Override>()

  // biome-ignore lint/suspicious/noExplicitAny: as above
  ofKind(kind: string, key: KeyFunction<any>): Pick<OfKind, 'exact' | 'prefixes'> {
    let of = this.#kinds.get(kind)
    if (!of) {
      of = { key, exact: new Map(), prefixes: new PrefixMap() }
      this.#kinds.set(kind, of)
      this.#only = this.#kinds.size === 1 ? of : undefined
    }
    return of
  }

  get ranges(): RangeMap<Override> {
    return this.#ranges
  }

  /** The variant for a request: `base`, where no override is for it. A promise only where a key is one. */
  choose(base: Variant, context: Context): Variant | Promise<Variant> {
    if (this.#only) {
      const value: unknown = this.#only.key(context.request, context)
      if (!isThenable(value)) return this.#pickByOne(base, this.#only, value, context)
      return Promise.resolve(value).then((known) => this.#pick(base, [known], context))
    }
    if (this.#kinds.size === 0) return this.#pick(base, [], context)
    const values: unknown[] = []
    let isLate = false
    for (const { key } of this.#kinds.values()) {
      const value: unknown = key(context.request, context)
      isLate ||= isThenable(value)
      values.push(value)
    }
    if (isLate) return Promise.all(values).then((known) => this.#pick(base, known, context))
    return this.#pick(base, values, context)
  }

  /** As `#pick`, without what several kinds take: every request passes here. */
  #pickByOne(base: Variant, { exact, prefixes }: OfKind, value: unknown, { ip }: Context): Variant {
    const text = value === undefined || value === null ? undefined : String(value)
    const found =
      (text === undefined ? undefined : inForce(exact.get(text))) ??
      inForce(this.#ranges.find(ip)) ??
      (text === undefined ? undefined : inForce(prefixes.find(text)))
    return found ? variantOf(found, base) : base
  }

  #pick(base: Variant, values: readonly unknown[], { ip }: Context): Variant {
    const found =
      this.#first(values, ({ exact }, text) => exact.get(text)) ??
      inForce(this.#ranges.find(ip)) ??
      this.#first(values, ({ prefixes }, text) => prefixes.find(text))
    return found ? variantOf(found, base) : base
  }

  #first(values: readonly unknown[], find: (of: OfKind, text: string) => Override | undefined): Override | undefined {
    let at = 0
    for (const of of this.#kinds.values()) {
      const value = values[at++]
      if (value === undefined || value === null) continue
      const found = inForce(find(of, String(value)))
      if (found) return found
    }
    return undefined
  }
}

/** One object for an override and what it is of, so that one limiter is made for it. */
function variantOf(override: Override, base: Variant): Variant {
  if (override.firstBase === base) return override.firstVariant as Variant
  let variant = override.others?.get(base)
  if (!variant) {
    // A tier without a limit of that name stays as it is.
    const limits = override.limits.get(base.tier)
    variant = limits ? { ...base, limits, override: override.index, alone: undefined } : base
    if (override.firstBase) {
      override.others ??= new Map()
      override.others.set(base, variant)
      return variant
    }
  }
  override.firstBase ??= base
  override.firstVariant ??= variant
  return variant
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && typeof (value as PromiseLike<unknown>).then === 'function'
}

/** The clock is asked only for those that end. */
function inForce(override: Override | undefined): Override | undefined {
  return override && (override.until === undefined || override.until > Date.now()) ? override : undefined
}
