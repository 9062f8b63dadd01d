import { isIPv4 } from 'node:net'
import { withTraits } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import { type HttpContext, isGone } from '../../request/context.js'
import { invalidPolicy, SluiceError, show } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { addressText, bare, ipv6Words, isMapped, plainAddress } from '../../util/ip-address.js'
import { networkOf } from '../../util/ip-range.js'
import { propertyOf } from '../../util/property-of.js'
import { RequestFault } from '../../util/request-fault.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { needsContext } from './needs-context.js'

export interface IpOptions {
  /**
   * Leading bits of an IPv4 address that identify one client, 1 to 32.
   *
   * `24` counts a network of 256 addresses as one, for clients that change their address within it. Such a key cannot be
   * banned: block the network by hand, or deny it by a list.
   * @default 32, each address by itself
   */
  readonly ipv4Prefix?: number
  /**
   * Leading bits of an IPv6 address that identify one client, 1 to 128.
   *
   * Providers assign a /64 or more to each customer, who can use every address in it.
   * @default 64
   */
  readonly ipv6Prefix?: number
  /**
   * NAT64 prefixes of 96 bits (RFC 6052) under which IPv4 clients appear.
   *
   * Such an address counts as the IPv4 address in its last 32 bits. `false` for none: their clients then share buckets
   * by `ipv6Prefix`.
   * @default ['64:ff9b::/96'], the well-known prefix
   */
  readonly nat64?: readonly string[] | false
}

/** The checked options. */
interface Grouping {
  readonly ipv4: number
  readonly ipv6: number
  /** The first three of the four words of each NAT64 prefix. */
  readonly nat64: readonly (readonly number[])[]
}

/**
 * The client's address as the framework resolves it by its trusted proxies, never a raw header. An IPv4-mapped or NAT64
 * IPv6 address counts as its IPv4 address; IPv6 is grouped by prefix, and IPv4 too where `ipv4Prefix` is given.
 *
 * @throws SluiceError `INVALID_POLICY`; per request `INVALID_KEY` where the address is missing or invalid.
 */
export function byIp<Subject>(options: IpOptions = {}): KeyFunction<Subject> {
  knownOptions('byIp', options, ['ipv4Prefix', 'ipv6Prefix', 'nat64'])
  const { ipv4Prefix = 32, ipv6Prefix = 64, nat64 = WELL_KNOWN_NAT64 } = options
  const ipv4 = wholeNumber('byIp', 'ipv4Prefix', ipv4Prefix, 1, 32)
  const ipv6 = wholeNumber('byIp', 'ipv6Prefix', ipv6Prefix, 1, 128)
  if (nat64 !== false && !Array.isArray(nat64)) invalidPolicy('byIp', 'nat64', 'an array of prefixes or false', nat64)
  const grouping: Grouping = { ipv4, ipv6, nat64: (nat64 || []).map(nat64Words) }
  return withTraits((_request, context) => keyOfClient(needsContext('byIp', context), grouping), {
    kind: 'ip',
    normalize: (address) => keyOfAddress(address, grouping),
    madeOf: [JSON.stringify(grouping)],
    bits: { ipv4, ipv6 },
  })
}

const WELL_KNOWN_NAT64 = ['64:ff9b::/96']

function nat64Words(text: unknown): readonly number[] {
  const [, address = ''] = /^([0-9a-f:]+)\/96$/i.exec(String(text)) ?? []
  const words = ipv6Words(address) ?? invalidPolicy('byIp', 'nat64', 'IPv6 prefixes such as "64:ff9b::/96"', text)
  return words.slice(0, 3)
}

/** Maximum of addresses in `X-Forwarded-For`, and of its characters, where the application trusts proxies. */
const MAX_ADDRESSES = 64
const LONGEST_CHAIN = 4096

/**
 * The client's address as the framework resolves it. Frameworks read `X-Forwarded-For` as far as its proxies are trusted. A
 * client that names thousands of trusted ones would cost milliseconds for each reading.
 *
 * @throws RequestFault where the header has more than 64 addresses, or 4,096 characters
 */
export function addressOf<Subject>(context: HttpContext<Subject>): string | undefined {
  if (hasLongChain(context)) {
    const message = `byIp: expected X-Forwarded-For with at most ${MAX_ADDRESSES} addresses and ${LONGEST_CHAIN} characters`
    throw new RequestFault('no address', message)
  }
  return context.ip
}

/** Whether the framework would read more of `X-Forwarded-For` than these bounds. */
export function hasLongChain<Subject>(context: HttpContext<Subject>): boolean {
  const chain = context.header('x-forwarded-for')
  if (chain === undefined || chain.length <= MAX_ADDRESSES || !isTooLong(chain)) return false
  return (propertyOf(context, 'proxyTrust') ?? 'none') !== 'none'
}

/** The remedy for a proxy that is not trusted, as a clause. */
export function remedyFor(context: Pick<HttpContext, 'proxyRemedy'>): string {
  return propertyOf(context, 'proxyRemedy') ?? "name it in the framework's trust settings"
}

function isTooLong(chain: string): boolean {
  if (chain.length > LONGEST_CHAIN) return true
  let addresses = 1
  for (let at = chain.indexOf(','); at >= 0; at = chain.indexOf(',', at + 1)) addresses++
  return addresses > MAX_ADDRESSES
}

function keyOfClient<Subject>(context: HttpContext<Subject>, grouping: Grouping): string {
  const address: unknown = addressOf(context)
  const key = typeof address === 'string' ? keyOfAddress(address, grouping) : undefined
  if (key !== undefined) return key
  const message =
    `byIp: expected the client's address, got ${show(address)} (behind a proxy, ${remedyFor(context)}; ` +
    'for connections without addresses, use another key)'
  // A closed connection has lost its address. An open one without an address, such as a Unix socket, never had one.
  if (address || isGone(context.response)) throw new RequestFault('no address', message)
  throw new SluiceError('INVALID_KEY', message)
}

/** Undefined if the text is no address. */
function keyOfAddress(given: string, grouping: Grouping): string | undefined {
  if (isIPv4(given)) return keyOfIPv4(given, grouping)
  // A socket that listens on both families reports nearly every client in this form.
  if (given.startsWith('::ffff:') && isIPv4(given.slice(7))) return keyOfIPv4(given.slice(7), grouping)
  const address = bare(given)
  if (isIPv4(address)) return keyOfIPv4(address, grouping)
  const words = ipv6Words(address)
  return words && keyOfIPv6(words, grouping)
}

function keyOfIPv4(address: string, { ipv4 }: Grouping): string {
  const range = ipv4 < 32 && plainAddress(address)
  return range ? networkOf(range.first, ipv4) : address
}

function keyOfIPv6(words: readonly number[], grouping: Grouping): string {
  const { ipv6, nat64 } = grouping
  const isIPv4 = isMapped(words) || nat64.some((network) => network.every((word, i) => word === words[i]))
  if (isIPv4) return keyOfIPv4(addressText(words.slice(3)), grouping)
  return ipv6 === 128 ? addressText(words) : networkOf(words, ipv6)
}

knowFactories({ 'byIp()': byIp })
