import ipaddr from 'ipaddr.js'
import { type IpAddress, ipv6Words, plainAddress } from './ip-address.js'

/**
 * A network in its one spelling, such as `192.0.2.0/24`; undefined for what is none. Bits behind the prefix do not count.
 * One address of IPv4 is that address.
 */
export function networkText(text: string): string | undefined {
  const [, base, bits] = /^([\d.:a-f]+)\/(0|[1-9]\d{0,2})$/i.exec(text) ?? []
  const address = base === undefined ? undefined : plainAddress(base)
  if (!address || base === undefined) return undefined
  // The prefix counts from the front of what is written.
  const prefix = Number(bits) - (address.isIPv4 && ipv6Words(base) ? 96 : 0)
  if (prefix < 0 || prefix > (address.isIPv4 ? 32 : 128)) return undefined
  const words = masked(address, prefix)
  if (address.isIPv4) {
    const [word = 0] = words
    const dotted = [24, 16, 8, 0].map((shift) => (word >>> shift) & 255).join('.')
    return prefix === 32 ? dotted : `${dotted}/${prefix}`
  }
  const parts = words.flatMap((word) => [word >>> 16, word & 0xffff])
  return `${new ipaddr.IPv6(parts).toRFC5952String()}/${prefix}`
}

/** The words of an address without the bits behind a prefix. */
export function masked({ isIPv4, a, b, c, d }: IpAddress, prefix: number): number[] {
  const words = isIPv4 ? [a] : [a, b, c, d]
  return words.map((word, i) => {
    const bits = Math.min(32, Math.max(0, prefix - 32 * i))
    return bits === 0 ? 0 : (word & (0xffffffff << (32 - bits))) >>> 0
  })
}
