import { startOf } from '../store/identity.js'
import type { IpRange } from '../util/ip-address.js'
import { ipRange } from '../util/ip-range.js'
import { RangeMap } from '../util/range-map.js'

const START = startOf('ip')

/**
 * Whether an identity is a network without counts of its own. IPv6 networks are excluded, as clients are grouped by
 * them.
 */
export function isRange(identity: string): boolean {
  return identity.startsWith(START) && identity.includes('/') && !identity.includes(':')
}

interface OfPolicy<Value> {
  readonly policy: string
  readonly value: Value
}

/** Values of networks, by policy. A search finds the values of all networks that contain an address. */
export class BlockedRanges<Value> {
  readonly #byRange = new RangeMap<readonly OfPolicy<Value>[]>()

  get size(): number {
    return this.#byRange.size
  }

  /** Does nothing if the identity is not a network. */
  set(policy: string, identity: string, value: Value): void {
    const range = networkIn(identity)
    if (range) this.#byRange.set(range, [...this.#others(range, policy), { policy, value }])
  }

  delete(policy: string, identity: string): void {
    const range = networkIn(identity)
    if (!range) return
    const others = this.#others(range, policy)
    if (others.length > 0) this.#byRange.set(range, others)
    else this.#byRange.delete(range)
  }

  /** The values of these policies' networks that contain an identity. */
  find(policies: readonly string[], identity: string): Value[] {
    const found: Value[] = []
    const range = this.size > 0 ? rangeIn(identity) : undefined
    if (!range) return found
    this.#byRange.find(range, (all) => {
      for (const policy of policies) for (const entry of all) if (entry.policy === policy) found.push(entry.value)
      return false
    })
    return found
  }

  #others(range: IpRange, policy: string): readonly OfPolicy<Value>[] {
    return this.#byRange.get(range)?.filter((each) => each.policy !== policy) ?? []
  }
}

function networkIn(identity: string): IpRange | undefined {
  return identity.includes('/') ? rangeIn(identity) : undefined
}

/** The addresses of an identity; undefined if its kind is not `ip`. */
export function rangeIn(identity: string): IpRange | undefined {
  return identity.startsWith(START) ? ipRange(identity.slice(START.length)) : undefined
}
