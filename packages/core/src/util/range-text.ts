import ipaddr from 'ipaddr.js'
import type { IpRange } from './ip-range.js'

// Apart from `ip-range`, which the thread that reads lists brings along as text.

/** A range in its one spelling: an address of IPv4, a network where it is one, else its first and its last address. */
export function rangeText(range: IpRange): string {
  const [network = '', ...others] = networksOf(range)
  if (others.length > 0) return `${addressText(range.first)}-${addressText(range.last)}`
  return range.isIPv4 ? network.replace(/\/32$/, '') : network
}

/** A range as the fewest networks that are it together, such as `192.0.2.0/24`. */
export function networksOf({ isIPv4, first, last }: IpRange): string[] {
  const bits = isIPv4 ? 32 : 128
  const networks: string[] = []
  const end = numberOf(last)
  for (let at = numberOf(first); at <= end; ) {
    let free = 0
    while (free < bits && (at & (1n << BigInt(free))) === 0n && at + (2n << BigInt(free)) - 1n <= end) free++
    networks.push(`${addressText(wordsOf(at, first.length))}/${bits - free}`)
    at += 1n << BigInt(free)
  }
  return networks
}

/** How many addresses a range holds. Numbers where they are exact. */
export function sizeOfRange({ isIPv4, first, last }: IpRange): number | bigint {
  const size = numberOf(last) - numberOf(first) + 1n
  return isIPv4 ? Number(size) : size
}

function addressText(words: readonly number[]): string {
  if (words.length === 1) return [24, 16, 8, 0].map((shift) => ((words[0] as number) >>> shift) & 255).join('.')
  return new ipaddr.IPv6(words.flatMap((word) => [word >>> 16, word & 0xffff])).toRFC5952String()
}

function numberOf(words: readonly number[]): bigint {
  return words.reduce((sum, word) => (sum << 32n) + BigInt(word), 0n)
}

function wordsOf(number: bigint, count: number): number[] {
  return Array.from({ length: count }, (_, i) => Number((number >> BigInt(32 * (count - 1 - i))) & 0xffffffffn))
}
