/** The spelling of the start of each address, IPv4 first. */
const STARTS = [
  // Private (RFC 1918), loopback, link-local, and of a carrier's NAT (RFC 6598).
  '(?:10|127|192\\.168|169\\.254)\\.',
  '172\\.(?:1[6-9]|2\\d|3[01])\\.',
  '100\\.(?:6[4-9]|[7-9]\\d|1[01]\\d|12[0-7])\\.',
  // Unique local (fc00::/7), link-local (fe80::/10), and loopback, which is in `::/64` as addresses are grouped.
  'f(?:[cd][\\da-f]|e[89ab])[\\da-f]:',
  '::1(?:/|$)|::/',
]
const PRIVATE = new RegExp(STARTS.join('|'), 'iy')

/**
 * Whether an address is loopback, private, link-local or of a carrier's NAT. It then belongs to a proxy or this machine rather
 * than to a client that a ban is meant for. Takes a value of `byIp`, from `start` on: an IPv4 address, or the start of an IPv6
 * one.
 */
export function isPrivateAddress(text: string, start = 0): boolean {
  PRIVATE.lastIndex = start
  return PRIVATE.test(text)
}
