const PERCENT = 37

/**
 * What `decodeURIComponent` makes of a text; undefined where that throws. An exception costs some microseconds, of which a client
 * could cause one with every character or two.
 */
export function percentDecoded(text: string): string | undefined {
  for (let at = text.indexOf('%'); at >= 0; at = text.indexOf('%', at)) {
    const length = encodedLength(text, at)
    if (length === 0) return undefined
    at += length
  }
  return decodeURIComponent(text)
}

/** How many characters encode the one that begins here, in UTF-8 (RFC 3629, 4); 0 where none is encoded. */
function encodedLength(text: string, at: number): number {
  const first = byteAt(text, at)
  if (first < 0x80) return first < 0 ? 0 : 3
  if (first < 0xc2 || first > 0xf4) return 0
  // Neither longer than needed, nor a surrogate, nor beyond U+10FFFF.
  const least = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80
  const most = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf
  const second = byteAt(text, at + 3)
  if (second < least || second > most) return 0
  const bytes = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4
  for (let i = 2; i < bytes; i++) if (byteAt(text, at + 3 * i) >> 6 !== 2) return 0
  return 3 * bytes
}

/** The byte that is encoded here as `%` and two digits; -1 where none is. */
function byteAt(text: string, at: number): number {
  if (text.charCodeAt(at) !== PERCENT) return -1
  const high = digitAt(text, at + 1)
  const low = digitAt(text, at + 2)
  return high < 0 || low < 0 ? -1 : high * 16 + low
}

function digitAt(text: string, at: number): number {
  const code = text.charCodeAt(at)
  if (code >= 48 && code <= 57) return code - 48
  const letter = code | 32
  return letter >= 97 && letter <= 102 && code < 128 ? letter - 87 : -1
}
