import { addressText, getOrInsert, networkOf } from '@sluice/core/internal'
import { HASHED } from '../formats/recording.js'
import { SimulationError } from '../simulation-error.js'

/** Networks /24 in 240.0.0.0/4, where no client is. */
const MAX_NETWORKS_V4 = 2 ** 20
/** 3fff::/20, for documentation alone. */
const IPV6_START = 0x3fff0000

/** A network of clients: addresses of IPv4, networks /64 of IPv6, or addresses of these. */
interface Network {
  readonly number: number
  /** The numbers of its parts that are known, by their HMACs. */
  readonly parts: Map<string, number>
}

/**
 * Addresses of recordings, which are HMACs there. Each client gets an address that nobody has, in networks of the same sizes as
 * its own, so that limits and keys by networks work on these as on real ones.
 */
export class HashedAddresses {
  readonly #addresses = new Map<string, string>()
  readonly #ofIPv4 = new Map<string, Network>()
  readonly #ofIPv6 = new Map<string, Network>()
  readonly #subnets = new Map<string, Network>()

  /**
   * @param text HMACs of the networks and of the address, as the format of recordings has them
   * @throws SimulationError where there are more networks of IPv4 than addresses for them
   */
  addressOf(text: string): string {
    return getOrInsert(this.#addresses, text, () => addressText(this.#wordsOf(hashesIn(text))))
  }

  get isUsed(): boolean {
    return this.#addresses.size > 0
  }

  /** Names identities by these addresses, or networks of them, by their HMACs instead. */
  namer(): (identity: string) => string {
    const names = new Map<string, string>()
    for (const [text, address] of this.#addresses) {
      const hashes = hashesIn(text)
      const words = this.#wordsOf(hashes)
      const prefixes = words.length === 1 ? [24] : [48, 64]
      names.set(address, HASHED + hashes.at(-1))
      for (const [i, prefix] of prefixes.entries()) names.set(networkOf(words, prefix), HASHED + hashes[i])
    }
    return (identity) => {
      const value = identity.slice(identity.indexOf('=') + 1)
      const name = names.get(value)
      return name === undefined ? identity : identity.slice(0, -value.length) + name
    }
  }

  #wordsOf(hashes: readonly string[]): number[] {
    const [network = '', subnet = '', address] = hashes
    if (address === undefined) {
      const { number, part } = placeIn(this.#ofIPv4, network, subnet)
      if (number >= MAX_NETWORKS_V4) {
        throw new SimulationError(`recordings of more than ${MAX_NETWORKS_V4} networks: record a share of the clients`)
      }
      return [0xf0000000 + number * 256 + part]
    }
    const { number, part } = placeIn(this.#ofIPv6, network, subnet)
    const host = placeIn(this.#subnets, subnet, address).part + 1
    return [IPV6_START + (number >>> 16), (number & 0xffff) * 2 ** 16 + part, 0, host]
  }
}

function hashesIn(text: string): readonly string[] {
  return text.slice(HASHED.length).split('.')
}

/** The number of a network, and that of a part within it. */
function placeIn(networks: Map<string, Network>, hash: string, partHash: string) {
  const { number, parts } = getOrInsert(networks, hash, () => ({
    number: networks.size,
    parts: new Map<string, number>(),
  }))
  return { number, part: getOrInsert(parts, partHash, () => parts.size) }
}
