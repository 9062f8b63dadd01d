/** An ASCII character, and those of two, three and four bytes in UTF-8 (RFC 3629, 4), as they follow their first `%`. */
const CHARACTERS = [
  '[0-7][\\da-f]',
  '(?:c[2-9a-f]|d[\\da-f])%[89ab][\\da-f]',
  '(?:e0%[ab]|e[1-9a-cef]%[89ab]|ed%[89])[\\da-f]%[89ab][\\da-f]',
  '(?:f0%[9ab]|f[1-3]%[89ab]|f4%8)[\\da-f](?:%[89ab][\\da-f]){2}',
]
/** A text whose every `%` begins a character. Each way to continue has another first digit, so it never goes back. */
const WHOLE = new RegExp(`^[^%]*(?:%(?:${CHARACTERS.join('|')})[^%]*)*$`, 'i')

/**
 * The result of `decodeURIComponent`, or undefined if that throws. An exception costs some microseconds, and a client could
 * cause one with every character or two.
 */
export function percentDecoded(text: string): string | undefined {
  if (!text.includes('%')) return text
  return WHOLE.test(text) ? decodeURIComponent(text) : undefined
}
