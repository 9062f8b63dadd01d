import { isIP, isIPv4 } from 'node:net'
import ipaddr from 'ipaddr.js'
import { invalidPolicy, SluiceError, show } from '../../errors.js'
import { knownOptions, wholeNumber } from '../../limits/checks.js'
import type { KeyFunction } from '../../limits/limit.js'
import { needsContext } from './needs-context.js'

export interface IpOptions {
  /**
   * Leading bits of an IPv6 address that make one client, 1 to 128. Providers hand out a /64 or more
   * to each customer, who can use every address in it. @default 64
   */
  readonly ipv6Prefix?: number
}

const byPrefix = new Map<number, KeyFunction<never>>()

/**
 * The client's address by the framework's own trusted-proxy answer, never a raw header. IPv4 in any
 * IPv6 clothing (mapped, NAT64) counts as that IPv4 address; IPv6 is grouped by prefix.
 *
 * @throws SluiceError `INVALID_POLICY`; per request `INVALID_KEY` where the address is missing or none.
 */
export function byIp<Subject>(options: IpOptions = {}): KeyFunction<Subject> {
  const prefix = checkedPrefix('byIp', options)
  // One function per prefix: limits with the same key function share its evaluation, and their log.
  let key = byPrefix.get(prefix)
  if (!key) {
    key = (_request, context) => keyOfAddress(needsContext('byIp', context).ip, prefix)
    byPrefix.set(prefix, key)
  }
  return key as KeyFunction<Subject>
}

/**
 * The key that `byIp` makes of an address: for `limiter.block(ipKey('2001:db8::1'), …)`.
 *
 * @throws SluiceError `INVALID_KEY`
 */
export function ipKey(address: string, options: IpOptions = {}): string {
  return keyOfAddress(address, checkedPrefix('ipKey', options))
}

function checkedPrefix(where: string, options: IpOptions): number {
  knownOptions(where, options, ['ipv6Prefix'])
  const { ipv6Prefix = 64 } = options
  const prefix = wholeNumber(where, 'ipv6Prefix', ipv6Prefix, 1)
  return prefix <= 128 ? prefix : invalidPolicy(where, 'ipv6Prefix', 'at most 128', prefix)
}

const NAT64 = [0x64, 0xff9b, 0, 0, 0, 0]

function keyOfAddress(given: string | undefined, prefix: number): string {
  if (typeof given === 'string') {
    if (isIPv4(given)) return given
    // What a socket that listens on both families says of nearly every client.
    if (given.startsWith('::ffff:') && isIPv4(given.slice(7))) return given.slice(7)
    const address = bare(given)
    if (isIPv4(address)) return address
    if (isIP(address) === 6) return keyOfIPv6(address, prefix)
  }
  throw new SluiceError(
    'INVALID_KEY',
    `byIp: expected the client's address, got ${show(given)} (behind a proxy, configure the framework's trust in it; ` +
      'for connections without addresses, use another key)',
  )
}

/** Without port, brackets and zone: `1.2.3.4:5555`, `[::1]:80`, `fe80::1%eth0`. */
function bare(given: string): string {
  const [, inBrackets] = /^\[([^\]]*)\](?::\d+)?$/.exec(given) ?? []
  const [, beforePort] = /^([\d.]+):\d+$/.exec(given) ?? []
  const address = inBrackets ?? beforePort ?? given
  const zone = address.indexOf('%')
  return zone < 0 ? address : address.slice(0, zone)
}

function keyOfIPv6(address: string, prefix: number): string {
  const parsed = ipaddr.IPv6.parse(address)
  if (parsed.isIPv4MappedAddress()) return parsed.toIPv4Address().toString()
  const { parts } = parsed
  if (NAT64.every((part, i) => parts[i] === part)) {
    const [high, low] = parts.slice(6) as [number, number]
    return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
  }
  const kept = parts.map((part, i) => part & (0xffff << Math.max(0, 16 - Math.max(0, prefix - 16 * i))) & 0xffff)
  return `${new ipaddr.IPv6(kept).toRFC5952String()}${prefix < 128 ? `/${prefix}` : ''}`
}
