import fc from 'fast-check'

const line = (text: string) => text.replace(/[\r\n]/g, ' ')
const number = fc.oneof(
  fc.integer({ min: -3, max: 100_000 }).map(String),
  fc.constantFrom('', '-', '+5', '1.5', 'NaN', '1e3', '0x10', '9007199254740993', '99999999999999999999', ' 5', '-0'),
)

/** Bytes as a bulk string. In this file a character is a byte. */
export const bulk = (bytes: Uint8Array): string => `$${bytes.length}\r\n${Buffer.from(bytes).toString('latin1')}\r\n`

/** One well-formed reply of RESP2, of any shape, with nonsense for numbers. */
export const resp: fc.Arbitrary<string> = fc.letrec<{ any: string; leaf: string }>((tie) => ({
  any: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    tie('leaf'),
    fc.array(tie('any'), { maxLength: 10 }).map((parts) => `*${parts.length}\r\n${parts.join('')}`),
  ),
  leaf: fc.oneof(
    number.map((text) => `:${text}\r\n`),
    fc.string({ maxLength: 20 }).map((text) => `+${line(text)}\r\n`),
    fc.string({ maxLength: 20 }).map((text) => `-ERR ${line(text)}\r\n`),
    fc.constantFrom('-NOSCRIPT No matching script\r\n', '-MOVED 1 127.0.0.1:1\r\n', '-READONLY no\r\n', '-\r\n'),
    fc.uint8Array({ maxLength: 40 }).map(bulk),
    fc.constantFrom('$-1\r\n', '*-1\r\n', '$0\r\n\r\n', '*0\r\n'),
  ),
})).any

/** A fragment that may or may not be RESP. */
export const bytes: fc.Arbitrary<string> = fc.oneof(
  resp,
  fc.tuple(resp, fc.nat(30)).map(([text, end]) => text.slice(0, end)),
  fc.uint8Array({ maxLength: 30 }).map((raw) => Buffer.from(raw).toString('latin1')),
  fc.constantFrom(
    ...['*1000000\r\n', '*9\r\n:1\r\n', '$1000000\r\nabc', '$-5\r\n', '*-5\r\n', '*x\r\n', '$x\r\n', ':\r\n', '*\r\n'],
    // Unrequested pushes and maps of RESP3.
    ...['>2\r\n+invalidate\r\n*0\r\n', '%1\r\n+a\r\n:1\r\n', '~1\r\n:1\r\n', '#t\r\n', '_\r\n', ',1.5\r\n', '(123\r\n'],
    ...['+OK\r\n+OK\r\n+OK\r\n', '\r\n', 'HTTP/1.1 400 Bad Request\r\n\r\n', '\0\0\0\0', '-LOADING\r\n'],
  ),
)
