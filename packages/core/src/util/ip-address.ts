/**
 * The addresses from the first to the last, both included; of one address it is the same. Each as whole numbers of 32 bits, the highest
 * in front. IPv4 has one of them.
 */
export interface IpRange {
  readonly isIPv4: boolean
  readonly first: readonly number[]
  readonly last: readonly number[]
}

/** The addresses under which IPv4 appears in IPv6: mapped (RFC 4291) and by the well-known NAT64 prefix (RFC 6052). */
const MAPPED = [0, 0, 0xffff]
const NAT64 = [0x0064ff9b, 0, 0]

/**
 * Parses an address; undefined if the text is none. IPv4-mapped and NAT64 IPv6 addresses count as IPv4. A port, brackets and a zone are
 * not part of it: `1.2.3.4:5555`, `[::1]:80`, `fe80::1%eth0`.
 */
export function ipAddress(text: string): IpRange | undefined {
  return plainAddress(text) ?? plainAddress(bare(text))
}

/**
 * As `ipAddress`, for texts that hold an address and nothing else. No part is written in another base, with leading zeros or left
 * out. Read character by character: by a pattern IPv4 takes four times as long, and IPv6 split at its colons ten times.
 */
export function plainAddress(text: string): IpRange | undefined {
  const v4 = ipv4(text, 0)
  if (v4 >= 0) return oneAddress([v4])
  const words = ipv6Words(text)
  return words && oneAddress(embedsIPv4(words) ? words.slice(3) : words)
}

function oneAddress(words: readonly number[]): IpRange {
  return { isIPv4: words.length === 1, first: words, last: words }
}

/** Whether an IPv6 address is an IPv4 address in its last 32 bits. */
export function embedsIPv4(words: readonly number[]): boolean {
  return isMapped(words) || NAT64.every((word, i) => word === words[i])
}

export function isMapped(words: readonly number[]): boolean {
  return MAPPED.every((word, i) => word === words[i])
}

/** The one spelling of an address: for IPv6 that of RFC 5952. */
export function addressText(words: readonly number[]): string {
  const [first = 0] = words
  if (words.length === 1) return `${first >>> 24}.${(first >>> 16) & 255}.${(first >>> 8) & 255}.${first & 255}`
  const part = (i: number) => ((words[i >> 1] as number) >>> (i % 2 === 0 ? 16 : 0)) & 0xffff
  // The first of the longest runs of zeros goes, of two or more.
  let [start, length] = [-1, 1]
  for (let i = 0; i < 8; i++) {
    let end = i
    while (end < 8 && part(end) === 0) end++
    if (end - i > length) [start, length] = [i, end - i]
  }
  // Part by part: lists of parts take three times as long.
  let text = ''
  for (let i = 0; i < 8; i++) {
    if (i === start) {
      text += '::'
      i += length - 1
    } else text += (i === 0 || i === start + length ? '' : ':') + part(i).toString(16)
  }
  return text
}

/** Without port, brackets and zone. */
export function bare(given: string): string {
  const [, inBrackets] = /^\[([^\]]*)\](?::\d+)?$/.exec(given) ?? []
  const [, beforePort] = /^([\d.]+):\d+$/.exec(given) ?? []
  const address = inBrackets ?? beforePort ?? given
  const zone = address.indexOf('%')
  return zone < 0 ? address : address.slice(0, zone)
}

/** The dotted address from `at` to the end of a text as a number; -1 where there is none. No number has a leading zero. */
function ipv4(text: string, at: number): number {
  const end = text.length
  // From 0.0.0.0 to 255.255.255.255.
  if (end - at < 7 || end - at > 15) return -1
  let word = 0
  let part = 0
  let digits = 0
  let dots = 0
  for (let i = at; i < end; i++) {
    const code = text.charCodeAt(i)
    if (code === DOT) {
      if (digits === 0 || ++dots > 3) return -1
      word = word * 256 + part
      part = 0
      digits = 0
      continue
    }
    const digit = code - ZERO
    if (digit < 0 || digit > 9 || (digits > 0 && part === 0)) return -1
    part = part * 10 + digit
    digits++
    if (part > 255) return -1
  }
  return dots === 3 && digits > 0 ? word * 256 + part : -1
}

const DOT = 46
const ZERO = 48
const COLON = 58

const parts = new Uint16Array(8)

/** The four words of an IPv6 address in any of its spellings; undefined if it is none. */
export function ipv6Words(text: string): number[] | undefined {
  const end = text.length
  if (end < 2 || end > 45) return undefined
  let count = 0
  let gap = -1
  let i = 0
  if (text.charCodeAt(0) === COLON) {
    if (text.charCodeAt(1) !== COLON) return undefined
    gap = 0
    i = 2
  }
  while (i < end) {
    if (count === 8) return undefined
    const start = i
    let part = 0
    let digit = 0
    while (i < end) {
      digit = hexDigit(text.charCodeAt(i))
      if (digit < 0) break
      part = part * 16 + digit
      i++
    }
    if (i < end && text.charCodeAt(i) === DOT) {
      // The last 32 bits, as IPv4 is written.
      const word = ipv4(text, start)
      if (word < 0 || count > 6) return undefined
      parts[count++] = word >>> 16
      parts[count++] = word & 0xffff
      i = end
      break
    }
    if (i === start || i - start > 4) return undefined
    parts[count++] = part
    if (i === end) break
    if (text.charCodeAt(i) !== COLON) return undefined
    i++
    if (i < end && text.charCodeAt(i) === COLON) {
      if (gap >= 0) return undefined
      gap = count
      i++
    } else if (i === end) return undefined
  }
  if (gap < 0 ? count !== 8 : count > 7) return undefined
  if (gap >= 0) {
    const moved = count - gap
    for (let n = 1; n <= moved; n++) parts[8 - n] = parts[count - n] as number
    for (let n = gap; n < 8 - moved; n++) parts[n] = 0
  }
  return [word(0), word(2), word(4), word(6)]
}

function word(at: number): number {
  return (((parts[at] as number) << 16) | (parts[at + 1] as number)) >>> 0
}

/** The value of a hexadecimal digit by its code, -1 for what is none. */
const HEX = Int8Array.from({ length: 128 }, (_, code) => {
  const digit = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(digit) ? -1 : digit
})

function hexDigit(code: number): number {
  return code < 128 ? (HEX[code] as number) : -1
}
