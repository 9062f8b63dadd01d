import type { HttpContext, KeyFunction } from '@sluice/core'
import {
  type IpRange,
  ipAddress,
  isAddressForgeable,
  isThenable,
  type MaybePromise,
  RangeMap,
} from '@sluice/core/internal'
import { PrefixMap } from '../match/prefix-map.js'
import type { CountedOf } from './counted-of.js'
import type { Override, Variant } from './policy.js'

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Context = HttpContext<any>

/** The ranks of overrides, by the clients that they are for. Among several for one request, the highest counts. */
export const RANK = { prefix: 1, range: 2, address: 3, exact: 4 } as const

/** Clients of one kind. */
interface OfKind {
  readonly kind: string
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly key: KeyFunction<any>
  readonly exact: Map<string, Override>
  readonly prefixes: PrefixMap<Override>
}

/**
 * The overrides of one policy. An exact one counts before ranges, the smallest first, and these before prefixes, the longest
 * first.
 */
export class Overrides {
  readonly #kinds: OfKind[] = []
  readonly #ranges = new RangeMap<Override>()
  /** Whether one of a range may admit more. */
  #favoursRanges = false

  // biome-ignore lint/suspicious/noExplicitAny: as above
  ofKind(kind: string, key: KeyFunction<any>): OfKind {
    let kindTable = this.#kinds.find((each) => each.kind === kind)
    if (!kindTable) {
      kindTable = { kind, key, exact: new Map(), prefixes: new PrefixMap() }
      this.#kinds.push(kindTable)
    }
    return kindTable
  }

  /** Whether it was free. */
  addRange(range: IpRange, override: Override): boolean {
    if (this.#ranges.get(range)) return false
    this.#favoursRanges ||= override.changed.mayAdmitMore
    this.#ranges.set(range, override)
    return true
  }

  /** The override for an identity that is given by its kind, whatever the request. `value`: as it is counted. */
  findGiven(kind: string, value: string): Override | undefined {
    const kindTable = this.#kinds.find((each) => each.kind === kind)
    const exact = kindTable && inForce(kindTable.exact.get(value))
    if (exact) return exact
    // A group of addresses is looked up by its first address.
    const address = kind === 'ip' ? ipAddress(value.split('/', 1)[0] as string) : undefined
    return (address && this.#ranges.find(address, isInForce)) ?? kindTable?.prefixes.find(value, isInForce)
  }

  /** The override for a request, or for a client whose values are given apart. A promise only where a key is one. */
  find(context: Context, countedOf?: CountedOf): MaybePromise<Override | undefined> {
    const kinds = this.#kinds
    // Not by `push`, which makes room for 17 values: every request passes here.
    const values = new Array<unknown>(kinds.length)
    let isLate = false
    for (let i = 0; i < kinds.length; i++) {
      const { kind, key } = kinds[i] as OfKind
      const value: unknown = countedOf ? countedOf(kind, key) : key(context.request, context)
      isLate ||= typeof value !== 'string' && isThenable(value)
      values[i] = value
    }
    if (isLate) return Promise.all(values).then((known) => this.#pick(known, context))
    return this.#pick(values, context)
  }

  #pick(values: readonly unknown[], context: Context): Override | undefined {
    const kinds = this.#kinds
    for (let i = 0; i < kinds.length; i++) {
      const value = values[i]
      const found = isGiven(value) ? inForce((kinds[i] as OfKind).exact.get(String(value))) : undefined
      if (found) return found
    }
    const ofRange = this.#ofRange(context)
    if (ofRange) return ofRange
    for (let i = 0; i < kinds.length; i++) {
      const { kind, prefixes } = kinds[i] as OfKind
      const value = values[i]
      const found = isGiven(value) ? prefixes.find(String(value), holdsFor(kind === 'ip', context)) : undefined
      if (found) return found
    }
    return undefined
  }

  #ofRange(context: Context): Override | undefined {
    // Called also where none is found, so that the warning comes with the first request.
    const holds = holdsFor(this.#favoursRanges, context)
    const address = this.#ranges.size > 0 && context.ip !== undefined ? ipAddress(context.ip) : undefined
    return address && this.#ranges.find(address, holds)
  }
}

/** The variant by the override that was found: `base` without one. */
export function variantBy(found: MaybePromise<Override | undefined>, base: Variant): MaybePromise<Variant> {
  if (found instanceof Promise) return found.then((known) => variantBy(known, base))
  if (!found) return base
  base.policy.changes?.noteEnd(found.until)
  return variantOf(found, base)
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

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null
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
