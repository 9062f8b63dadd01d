import { createHash } from 'node:crypto'
import fc from 'fast-check'

/** Texts with a meaning somewhere between a client and a key in Redis. */
const PIECES = [
  ...['{', '}', '{}', '{a}', '%', '%7B', '%25', '%2A', '#', '*', '?', '[a]', '[^a]', '\\', '|', '"', "'", '`', '$'],
  ...['\0', 'ip=', 'key=', '\r\n', '\n', '\t', ' ', '\x7f', '\x1b[2J', '\u2028', '\ufeff', '\ufffd', '\u202e'],
  ...['\ud800', '\udc00', '\ud83d\ude00', 'é', 'e\u0301', 'İ', 'ß', '日'],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'undefined', 'null', 'NaN', '[object Object]'],
  ...['sluice:', ':fuzz:', '}:fuzz:block', 'blocked', ':', '::', '/', '.', ',', ';', '=', '-', '+', '~'],
  ...['0', '-0', '1', '1e3', '0x10', '9007199254740993', 'a', 'A', 'b', 'x'],
]

const piece = fc.constantFrom(...PIECES)
const utf16 = fc.integer({ min: 0, max: 0xffff }).map((unit) => String.fromCharCode(unit))

/** Any text: short and long, of characters, of bare UTF-16 units, or with a meaning somewhere. */
export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.string({ unit: piece, maxLength: 8 }) },
  { weight: 2, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
  { weight: 2, arbitrary: fc.string({ unit: utf16, maxLength: 12 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'grapheme-ascii', minLength: 50, maxLength: 110 }) },
  // Lengths around every change of the form of a key, and far above.
  {
    weight: 1,
    arbitrary: fc
      .tuple(piece, fc.constantFrom(20, 30, 60, 64, 65, 90, 96, 97, 250, 256, 257, 10_000), piece)
      .map(([unit, length, end]) => unit.repeat(length).slice(0, length) + end),
  },
)

/** The stored form of a long key, which a client may send as its key. */
function likeHash(key: string): string {
  return `#${createHash('sha256').update(key, 'utf16le').digest('base64url').slice(0, 22)}`
}

const encode = (given: string) => encodeURIComponent(given.toWellFormed())
const decode = (given: string) => {
  try {
    return decodeURIComponent(given)
  } catch {
    return given
  }
}

const LOOKALIKES: readonly ((a: string, b: string) => string)[] = [
  (_, b) => b,
  (a, b) => a + b,
  (a, b) => b + a,
  (a) => likeHash(a),
  (a) => encode(a),
  (a) => decode(a),
  (a) => `{${a}}`,
  (a) => `sluice:v1:{key=${a}}:fuzz:log.1.3600000`,
  (a) => `key=${a}`,
  (a) => a.normalize('NFC'),
  (a) => a.normalize('NFD'),
  (a) => a.toLowerCase(),
  (a) => a.trim(),
  (a) => a.toWellFormed(),
  (a) => Buffer.from(a, 'utf8').toString('latin1'),
  (a) => a.slice(0, 256),
  (a) => a.replaceAll('\0', ''),
]

/** A text, and another one that a careless encoding could map to the same key. */
export const lookalikes: fc.Arbitrary<readonly [string, string]> = fc
  .tuple(text, text, fc.nat(LOOKALIKES.length - 1))
  .map(([a, b, i]) => [a, (LOOKALIKES[i] as (a: string, b: string) => string)(a, b)] as const)

const refuses = () => {
  throw new Error('a trap of the caller')
}
const TRAPS: ProxyHandler<object> = { get: refuses, getPrototypeOf: refuses, ownKeys: refuses, has: refuses }

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

/** Makes a value, so that nothing reads it before the code under test, not even the generator. */
export type Make = () => unknown

const made = (value: unknown): Make => Object.assign(() => value, { toString: () => fc.stringify(value) })

/** Values other than text or numbers, which imitate one or throw when they are read. */
export const notAValue: fc.Arbitrary<Make> = fc.oneof(
  fc.anything({ withBigInt: false, withDate: true, withMap: true, withSet: true, withNullPrototype: true }).map(made),
  fc.constantFrom<Make[]>(
    () => undefined,
    () => null,
    () => true,
    () => Symbol('key'),
    () => refuses,
    () => new Proxy({}, TRAPS),
    () => new Proxy(refuses, TRAPS),
    () => revoked(),
    () => ({ toString: () => 'k', valueOf: () => 1, [Symbol.toPrimitive]: () => 'k' }),
    () => ({ toString: refuses, valueOf: refuses }),
    () => Object.defineProperty({}, 'length', { get: refuses }),
    () => Object.defineProperty({}, 'constructor', { get: refuses }),
    () => Object('k'),
    () => Object(1),
    () => Object(1n),
    () => ['k'],
    () => new Uint8Array([107]),
    () => Object.create(null),
    () => Promise.resolve('k'),
  ),
)

/** Numbers at and beyond every edge, and values that look like numbers. */
export const number: fc.Arbitrary<Make> = fc.oneof(
  { weight: 3, arbitrary: fc.integer({ min: -3, max: 12 }).map(made) },
  { weight: 2, arbitrary: fc.maxSafeInteger().map(made) },
  { weight: 2, arbitrary: fc.double().map(made) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom<unknown[]>(
        ...[Number.NaN, -0, 1e308, -1e308, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 5e-324, 0.5, 1.5],
        ...[2 ** 31, 2 ** 32, 2 ** 48, 2 ** 52, 2 ** 53 - 1, 2 ** 53, 2 ** 63, -1, 1e21],
        ...['1', '0', '', ' ', '1s', '0x10', '1e3', 'NaN', '-1', '٣', 1n, 0n, 10n ** 400n],
      )
      .map(made),
  },
  { weight: 1, arbitrary: notAValue },
)
