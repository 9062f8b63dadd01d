import { type IpAddress, plainAddress } from '../util/ip-address.js'
import { masked } from '../util/network-text.js'

const START = 'ip='
/** Added to the prefix length of IPv6 networks, to keep them apart from those of IPv4. */
const OF_IPV6 = 100

/** Whether an identity is a network that nothing is counted by: those of IPv6 are what clients are grouped by. */
export function isRange(identity: string): boolean {
  return identity.startsWith(START) && identity.includes('/') && !identity.includes(':')
}

/** What is known of networks, by policy: found for every address in them. */
export class BlockedRanges<Value> {
  /** By the length of the prefix, and by the network's words. */
  readonly #byPrefix = new Map<number, Map<string, Map<string, Value>>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Does nothing for an identity that is no network. */
  set(policy: string, identity: string, value: Value): void {
    const place = placeOf(identity)
    if (!place) return
    const networks = this.#byPrefix.get(place.prefix) ?? new Map<string, Map<string, Value>>()
    const byPolicy = networks.get(place.key) ?? new Map<string, Value>()
    if (!byPolicy.has(policy)) this.#size++
    this.#byPrefix.set(place.prefix, networks.set(place.key, byPolicy.set(policy, value)))
  }

  delete(policy: string, identity: string): void {
    const place = placeOf(identity)
    const networks = place && this.#byPrefix.get(place.prefix)
    const byPolicy = networks?.get(place?.key as string)
    if (!place || !networks || !byPolicy?.delete(policy)) return
    this.#size--
    if (byPolicy.size === 0) networks.delete(place.key)
    if (networks.size === 0) this.#byPrefix.delete(place.prefix)
  }

  /** What is known of some policies' networks that hold an identity. */
  find(policies: readonly string[], identity: string): Value[] {
    if (this.#size === 0 || !identity.startsWith(START)) return []
    const [base = '', bits] = identity.slice(START.length).split('/')
    const address = plainAddress(base)
    if (!address) return []
    const longest = bits === undefined ? Number.POSITIVE_INFINITY : Number(bits) + OF_IPV6
    return this.holding(address, longest).flatMap((byPolicy) =>
      policies.flatMap((policy) => byPolicy.get(policy) ?? []),
    )
  }

  /** What is known of each network that holds an address, by policy. */
  holding(address: IpAddress, longest = Number.POSITIVE_INFINITY): ReadonlyMap<string, Value>[] {
    const found: ReadonlyMap<string, Value>[] = []
    for (const [prefix, networks] of this.#byPrefix) {
      if (prefix >= OF_IPV6 === address.isIPv4 || prefix > longest) continue
      const byPolicy = networks.get(keyOf(address, prefix))
      if (byPolicy) found.push(byPolicy)
    }
    return found
  }
}

function placeOf(identity: string): { readonly prefix: number; readonly key: string } | undefined {
  if (!identity.startsWith(START)) return undefined
  const [base = '', bits] = identity.slice(START.length).split('/')
  const address = bits === undefined ? undefined : plainAddress(base)
  if (!address) return undefined
  const prefix = Number(bits) + (address.isIPv4 ? 0 : OF_IPV6)
  return { prefix, key: keyOf(address, prefix) }
}

function keyOf(address: IpAddress, prefix: number): string {
  return masked(address, address.isIPv4 ? prefix : prefix - OF_IPV6).join('.')
}
