import { BlockList, isIP } from 'node:net'

/** Addresses that are read of the list that proxies append to. */
export const MAX_ADDRESSES = 64

/** Most characters of an address with its brackets, port and zone. */
const LONGEST_ADDRESS = 100

/** An address without port, brackets and zone, IPv4-mapped IPv6 as IPv4. Undefined if the text is none. */
export function addressIn(text: string): string | undefined {
  if (text.length > LONGEST_ADDRESS) return undefined
  const [, inBrackets] = /^\[([^\]]*)\](?::\d{1,5})?$/.exec(text) ?? []
  const [, beforePort] = /^([\d.]+):\d{1,5}$/.exec(text) ?? []
  const [bare = ''] = (inBrackets ?? beforePort ?? text).split('%', 1)
  if (isIP(bare) === 0) return undefined
  const [, mapped] = /^::ffff:([\d.]+)$/i.exec(bare) ?? []
  return mapped ?? bare
}

const LOOPBACK = ['127.0.0.0/8', '::1/128']

/** Networks of proxies whose information on clients is trusted. */
export class TrustedProxies {
  readonly #networks = new BlockList()

  /**
   * @param networks addresses, networks such as `10.0.0.0/8`, or `loopback`
   * @throws Error that says what is wrong
   */
  constructor(networks: readonly string[]) {
    for (const network of networks.flatMap((each) => (each === 'loopback' ? LOOPBACK : [each]))) this.#add(network)
    // As adapters check for frameworks that trust everyone, in networks or in parts of them.
    if (Array.from({ length: 64 }, (_, i) => this.has(`203.0.113.${i}`)).every(Boolean)) {
      throw new Error('expected your proxies alone, got all addresses: any client could choose its own')
    }
  }

  has(address: string): boolean {
    return this.#networks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
  }

  #add(network: string): void {
    const [, address = '', bits] = /^([0-9a-f.:]+)(?:\/(\d{1,3}))?$/i.exec(network) ?? []
    const version = isIP(address)
    const maxBits = version === 6 ? 128 : 32
    const prefix = bits === undefined ? maxBits : Number(bits)
    if (version === 0 || prefix > maxBits) {
      throw new Error(`expected addresses, networks such as 10.0.0.0/8, or loopback, got ${JSON.stringify(network)}`)
    }
    if (prefix === 0) throw new Error(`expected no ${network}: a trusted proxy can name any address as the client's`)
    this.#networks.addSubnet(address, prefix, version === 6 ? 'ipv6' : 'ipv4')
  }
}

/**
 * The client's address in a list that each proxy appends to: the last one that is no trusted proxy. Where all are trusted, the
 * first of the valid addresses. Undefined if the last is no address, or where more are trusted than are read.
 */
export function clientIn(list: string, trusted: TrustedProxies): string | undefined {
  let client: string | undefined
  let end = list.length
  for (let looked = 0; looked < MAX_ADDRESSES; looked++) {
    const start = list.lastIndexOf(',', end - 1)
    const address = addressIn(list.slice(start + 1, end).trim())
    // The entry before it came from a trusted proxy, but is no address: this is as far as the client is known.
    if (address === undefined) return client
    client = address
    if (!trusted.has(address) || start < 0) return client
    end = start
  }
  return undefined
}
