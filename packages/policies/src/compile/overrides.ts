import type { HttpContext, KeyFunction, Limit } from '@sluice/core'
import { type IpRange, ipAddress, isAddressForgeable, RangeMap } from '@sluice/core/internal'
import { isThenable, type Later } from '../match/later.js'
import { PrefixMap } from '../match/prefix-map.js'
import { type CountedOf, countedIn } from './counted-of.js'
import type { Variant } from './policy.js'

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Context = HttpContext<any>

/** Changed limits for some clients of a policy. */
export interface Override {
  /** Its index in the document, from 0, or its table. */
  readonly index: number | string
  readonly changed: ChangedLimits
  /** When it ends, in ms since 1970. */
  readonly until: number | undefined
}

/** Changed limits. Overrides of one policy with equal changes share them, and their limiter. */
export interface ChangedLimits {
  /** By the tier that they replace; `undefined` for those of a policy without tiers. */
  readonly byTier: ReadonlyMap<string | undefined, readonly Limit[]>
  /** Whether they may admit more than the limits that they replace. */
  readonly mayAdmitMore: boolean
  /** The variant for its policy, or for the first tier of a request. */
  firstBase?: Variant
  firstVariant?: Variant
  /** Variants for other tiers. */
  others?: Map<Variant, Variant>
}

/** The rank of an override by its scope. Among several for one request, the highest counts. */
export const RANK = { none: 0, prefix: 1, range: 2, address: 3, exact: 4 } as const

/** The override of a request that counts. */
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
  readonly isAddress: boolean
}

/**
 * The overrides of one policy. An exact one counts before ranges, the smallest first, and these before prefixes, the longest
 * first.
 */
export class Overrides {
  readonly #kinds = new Map<string, OfKind>()
  /** The kind, where there is one alone: nearly always. */
  #only: OfKind | undefined
  readonly #ranges = new RangeMap<Override>()
  /** Overrides of a single address. */
  readonly #addresses = new Set<Override>()
  /** Whether one of a range may admit more. */
  #favoursRanges = false

  // biome-ignore lint/suspicious/noExplicitAny: as above
  ofKind(kind: string, key: KeyFunction<any>): Pick<OfKind, 'exact' | 'prefixes'> {
    let of = this.#kinds.get(kind)
    if (!of) {
      of = { key, exact: new Map(), prefixes: new PrefixMap(), isAddress: kind === 'ip' }
      this.#kinds.set(kind, of)
      this.#only = this.#kinds.size === 1 ? of : undefined
    }
    return of
  }

  /** Whether it was free. */
  addRange(range: IpRange, override: Override): boolean {
    if (this.#ranges.get(range)) return false
    if (range.first.every((word, i) => word === range.last[i])) this.#addresses.add(override)
    this.#favoursRanges ||= override.changed.mayAdmitMore
    this.#ranges.set(range, override)
    return true
  }

  /** The override for an identity that is given by its kind, whatever the request. `value`: as it is counted. */
  findGiven(kind: string, value: string): Override | undefined {
    const of = this.#kinds.get(kind)
    const exact = of && inForce(of.exact.get(value))
    if (exact) return exact
    // A group of addresses is looked up by its first address.
    const address = kind === 'ip' ? ipAddress(value.split('/', 1)[0] as string) : undefined
    return (address && this.#ranges.find(address, isInForce)) ?? of?.prefixes.find(value, isInForce)
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

  /** Like `#pick`, for a single kind: every request passes here. */
  #pickByOne(base: Variant, { exact, prefixes, isAddress }: OfKind, value: unknown, context: Context): Variant {
    const text = value === undefined || value === null ? undefined : String(value)
    const found =
      (text === undefined ? undefined : inForce(exact.get(text))) ??
      this.#ofRange(context) ??
      (text === undefined ? undefined : prefixes.find(text, holdsFor(isAddress, context)))
    return found ? variantOf(found, base) : base
  }

  #pick(base: Variant, values: readonly unknown[], context: Context): Variant {
    const found =
      this.#first(values, ({ exact }, text) => inForce(exact.get(text))) ??
      this.#ofRange(context) ??
      this.#first(values, ({ prefixes, isAddress }, text) => prefixes.find(text, holdsFor(isAddress, context)))
    return found ? variantOf(found, base) : base
  }

  #ofRange(context: Context): Override | undefined {
    // Called also where none is found, so that the warning comes with the first request.
    const holds = holdsFor(this.#favoursRanges, context)
    const address = this.#ranges.size > 0 && context.ip !== undefined ? ipAddress(context.ip) : undefined
    return address && this.#ranges.find(address, holds)
  }

  #first(values: readonly unknown[], find: (of: OfKind, text: string) => Override | undefined): Override | undefined {
    let at = 0
    for (const of of this.#kinds.values()) {
      const value = values[at++]
      if (value === undefined || value === null) continue
      const found = find(of, String(value))
      if (found) return found
    }
    return undefined
  }

  /** The variant for a client whose values are given apart. */
  chooseGiven(base: Variant, context: Context, countedOf: CountedOf): Later<Variant> {
    return variantBy(this.find(context, countedOf), base)
  }

  /**
   * The override for a request, with its rank; or for a client whose values are given apart. A promise only where a key is one.
   */
  find(context: Context, countedOf = countedIn(context)): Later<FoundOverride> {
    const values = [...this.#kinds].map(([kind, { key }]): unknown => countedOf(kind, key))
    if (values.some(isThenable)) return Promise.all(values).then((known) => this.#rank(known, context))
    return this.#rank(values, context)
  }

  #rank(values: readonly unknown[], context: Context): FoundOverride {
    const exact = this.#first(values, (of, text) => inForce(of.exact.get(text)))
    if (exact) return { override: exact, rank: RANK.exact }
    const range = this.#ofRange(context)
    if (range) return { override: range, rank: this.#addresses.has(range) ? RANK.address : RANK.range }
    const prefix = this.#first(values, ({ prefixes, isAddress }, text) =>
      prefixes.find(text, holdsFor(isAddress, context)),
    )
    return prefix ? { override: prefix, rank: RANK.prefix } : NONE
  }
}

/** The variant by the override that was found: `base` without one. */
export function variantBy(found: Later<FoundOverride>, base: Variant): Later<Variant> {
  if (found instanceof Promise) return found.then((known) => variantBy(known, base))
  return found.override ? variantOf(found.override, base) : base
}

/** One object for each pair of changes and variant, so that one limiter is made for it. */
export function variantOf({ changed }: Override, base: Variant): Variant {
  if (changed.firstBase === base) return changed.firstVariant as Variant
  let variant = changed.others?.get(base)
  if (!variant) {
    // A tier without a limit of that name stays as it is.
    const limits = changed.byTier.get(base.tier)
    variant = limits ? { ...base, limits, base, alone: undefined } : base
    if (changed.firstBase) {
      changed.others ??= new Map()
      changed.others.set(base, variant)
      return variant
    }
  }
  changed.firstBase ??= base
  changed.firstVariant ??= variant
  return variant
}

function inForce(override: Override | undefined): Override | undefined {
  return override && isInForce(override) ? override : undefined
}

/** One that has ended counts as absent: wider ones count. */
export function holdsFor(isByAddress: boolean, context: Context): (override: Override) => boolean {
  return isByAddress && isAddressForgeable(context) ? isNoFavourInForce : isInForce
}

/** The clock is read only for those that end. */
function isInForce({ until }: Override): boolean {
  return until === undefined || until > Date.now()
}

/** An override that may admit more does not apply to an address that any client can choose. */
function isNoFavourInForce(override: Override): boolean {
  return !override.changed.mayAdmitMore && isInForce(override)
}
