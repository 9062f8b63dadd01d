import { addressText, embedsIPv4, type IpRange, ipv6Words, plainAddress } from './ip-address.js'

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
  return !address || address.isIPv4 || ipv6Prefix === 128 ? address : masked(address.first, ipv6Prefix)
}

function network(base: string, bits: string): IpRange | undefined {
  // No other spelling: `/+8` and `/08` are mistakes.
  if (!/^(?:0|[1-9]\d{0,2})$/.test(bits)) return undefined
  const prefix = Number(bits)
  const words = ipv6Words(base)
  if (words) {
    if (prefix > 128) return undefined
    return prefix >= 96 && embedsIPv4(words) ? masked(words.slice(3), prefix - 96) : masked(words, prefix)
  }
  const address = plainAddress(base)
  return address && prefix <= 32 ? masked(address.first, prefix) : undefined
}

function between(from: string, to: string): IpRange | undefined {
  const start = plainAddress(from)
  const end = plainAddress(to)
  if (!start || !end || start.isIPv4 !== end.isIPv4 || isAfter(start.first, end.first)) return undefined
  return { ...start, last: end.last }
}

function isAfter(first: readonly number[], last: readonly number[]): boolean {
  for (let i = 0; i < first.length; i++) if (first[i] !== last[i]) return (first[i] as number) > (last[i] as number)
  return false
}

/** The network of an address, by the length of its prefix. */
export function masked(words: readonly number[], prefix: number): IpRange {
  const masks = words.map((_, i) => maskOf(Math.min(32, Math.max(0, prefix - 32 * i))))
  return {
    isIPv4: words.length === 1,
    first: words.map((word, i) => (word & (masks[i] as number)) >>> 0),
    last: words.map((word, i) => (word | ~(masks[i] as number)) >>> 0),
  }
}

/** The network of an IPv6 address in its one spelling, such as `2001:db8::/64`. As `rangeText` of `masked`, in a quarter of the time. */
export function networkOf(words: readonly number[], prefix: number): string {
  const network = words.map((word, i) => (word & maskOf(Math.min(32, Math.max(0, prefix - 32 * i)))) >>> 0)
  return `${addressText(network)}/${prefix}`
}

function maskOf(bits: number): number {
  return bits === 0 ? 0 : (ALL << (32 - bits)) >>> 0
}

/** A network in its one spelling, such as `192.0.2.0/24`; undefined for what is none. One address of IPv4 is that address. */
export function networkText(text: string): string | undefined {
  const range = text.includes('/') ? ipRange(text) : undefined
  return range && rangeText(range)
}

/** A range in its one spelling: an address of IPv4, a network where it is one, else its first and its last address. */
export function rangeText({ isIPv4, first, last }: IpRange): string {
  const prefix = commonBits(first, last)
  const network = masked(first, prefix)
  if (isAfter(first, network.first) || isAfter(network.last, last)) return `${addressText(first)}-${addressText(last)}`
  return isIPv4 && prefix === 32 ? addressText(first) : `${addressText(first)}/${prefix}`
}

/** How many addresses a range holds. Numbers where they are exact. */
export function sizeOfRange({ isIPv4, first, last }: IpRange): number | bigint {
  const between = last.reduce((sum, word, i) => (sum << 32n) + BigInt(word - (first[i] as number)), 0n)
  return isIPv4 ? Number(between) + 1 : between + 1n
}

/** How many leading bits two addresses share. */
export function commonBits(one: readonly number[], other: readonly number[]): number {
  for (let i = 0; i < one.length; i++) {
    const different = (one[i] as number) ^ (other[i] as number)
    if (different !== 0) return 32 * i + Math.clz32(different)
  }
  return 32 * one.length
}
