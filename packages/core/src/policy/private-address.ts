/**
 * Whether an address is loopback, private, link-local or of a carrier's NAT: of a proxy or of this machine rather than of a
 * client that a ban is meant for. Takes what `byIp` yields, from `start` on: an IPv4 address, or the start of an IPv6 one.
 *
 * Reads as few characters as it can: it is called for every request of a policy that bans.
 */
export function isPrivateAddress(text: string, start = 0): boolean {
  const dot = text.indexOf('.', start)
  const colon = text.indexOf(':', start)
  if (colon >= 0) return isPrivateIPv6(text, start, colon)
  if (dot < 0) return false
  const first = Number(text.slice(start, dot))
  if (first === 10 || first === 127) return true
  if (first !== 172 && first !== 192 && first !== 169 && first !== 100) return false
  const second = Number(text.slice(dot + 1, text.indexOf('.', dot + 1)))
  if (first === 172) return second >= 16 && second <= 31
  if (first === 192) return second === 168
  if (first === 169) return second === 254
  return second >= 64 && second <= 127
}

/** Unique local (fc00::/7), link-local (fe80::/10), and loopback, which is in `::/64` as addresses are grouped. */
function isPrivateIPv6(text: string, start: number, colon: number): boolean {
  if (colon === start)
    return text.startsWith('::1', start) ? /^::1(\/|$)/.test(text.slice(start)) : text.startsWith('::/', start)
  const part = Number.parseInt(text.slice(start, colon), 16)
  return (part & 0xfe00) === 0xfc00 || (part & 0xffc0) === 0xfe80
}
