import { embedsIPv4, ipv6Words, plainAddress, type Words } from './ip-address.js'

/** The addresses from the first to the last, both included. IPv4 has one word. */
export interface IpRange {
  readonly isIPv4: boolean
  readonly first: readonly number[]
  readonly last: readonly number[]
}

const ALL = 0xffffffff

/** The forms of a range, for messages. */
export const RANGE_FORMS = 'an address, or a range such as "192.0.2.0/24" or "192.0.2.0-192.0.2.9"'

/**
 * Parses a range: an address, `192.0.2.0/24`, or `192.0.2.0-192.0.2.9`; undefined if the text is none. Bits behind
 * a prefix do not count: `192.0.2.7/24` is the network that the address is in. IPv4-mapped IPv6 addresses count as IPv4.
 *
 * @param ipv6Prefix leading bits that an IPv6 address without a prefix stands for
 */
export function ipRange(text: string, ipv6Prefix = 128): IpRange | undefined {
  const slash = text.indexOf('/')
  if (slash >= 0) return network(text.slice(0, slash), text.slice(slash + 1))
  const dash = text.indexOf('-')
  if (dash >= 0) return between(text.slice(0, dash).trimEnd(), text.slice(dash + 1).trimStart())
  const address = plainAddress(text)
  if (!address) return undefined
  const { isIPv4, a, b, c, d } = address
  return isIPv4 ? { isIPv4, first: [a], last: [a] } : maskedIPv6([a, b, c, d], ipv6Prefix)
}

function network(base: string, bits: string): IpRange | undefined {
  // No other spelling: `/+8` and `/08` are mistakes.
  if (!/^(?:0|[1-9]\d{0,2})$/.test(bits)) return undefined
  const prefix = Number(bits)
  const words = ipv6Words(base)
  if (words) {
    const [a, b, c, d] = words
    if (prefix > 128) return undefined
    return prefix >= 96 && embedsIPv4(a, b, c) ? maskedIPv4(d, prefix - 96) : maskedIPv6(words, prefix)
  }
  const address = plainAddress(base)
  return address && prefix <= 32 ? maskedIPv4(address.a, prefix) : undefined
}

function between(from: string, to: string): IpRange | undefined {
  const start = plainAddress(from)
  const end = plainAddress(to)
  if (!start || !end || start.isIPv4 !== end.isIPv4) return undefined
  const { isIPv4 } = start
  const first = isIPv4 ? [start.a] : [start.a, start.b, start.c, start.d]
  const last = isIPv4 ? [end.a] : [end.a, end.b, end.c, end.d]
  return isAfter(first, last) ? undefined : { isIPv4, first, last }
}

function isAfter(first: readonly number[], last: readonly number[]): boolean {
  for (let i = 0; i < first.length; i++) if (first[i] !== last[i]) return (first[i] as number) > (last[i] as number)
  return false
}

function maskedIPv4(word: number, prefix: number): IpRange {
  const mask = maskOf(prefix)
  return { isIPv4: true, first: [(word & mask) >>> 0], last: [(word | ~mask) >>> 0] }
}

function maskedIPv6(words: Words, prefix: number): IpRange {
  const masks = words.map((_, i) => maskOf(Math.min(32, Math.max(0, prefix - 32 * i))))
  return {
    isIPv4: false,
    first: words.map((word, i) => (word & (masks[i] as number)) >>> 0),
    last: words.map((word, i) => (word | ~(masks[i] as number)) >>> 0),
  }
}

function maskOf(bits: number): number {
  return bits === 0 ? 0 : (ALL << (32 - bits)) >>> 0
}
