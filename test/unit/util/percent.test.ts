import fc from 'fast-check'
import { expect, test } from 'vitest'
import { percentDecoded } from '../../../packages/core/src/util/percent.js'
import { byEffort } from '../../support/effort.js'

/** The result of the language itself. */
function expected(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

const hex = fc.integer({ min: 0, max: 255 }).map((byte) => `%${byte.toString(16).padStart(2, '0')}`)
const piece = fc.oneof(
  { weight: 4, arbitrary: hex },
  {
    weight: 2,
    arbitrary: fc.string({ unit: 'binary', maxLength: 2 }).map((text) => encodeURIComponent(text.toWellFormed())),
  },
  fc.constantFrom(
    '%',
    '%%',
    '%4',
    '%g1',
    '%1g',
    '%C3',
    '%E2%82',
    '%F0%9F%98',
    '%ED%A0%80',
    '%C0%AF',
    '%F4%90%80%80',
    'a',
    'é',
  ),
)

test('percentDecoded equals decodeURIComponent, and returns undefined if that throws', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 6 }), (pieces) => {
      const text = pieces.join('')
      expect(percentDecoded(text)).toBe(expected(text))
    }),
    { numRuns: byEffort({ usual: 5000, full: 500_000 }) },
  )
})

/** The edges of every range of bytes that UTF-8 tells apart. */
const EDGES = [0x00, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xff]
const SECOND = byEffort({ usual: EDGES, full: Array.from({ length: 256 }, (_, byte) => byte) })

test('percentDecoded equals decodeURIComponent for every first byte before any kind of second byte', () => {
  const encoded = (...bytes: number[]) => bytes.map((byte) => `%${byte.toString(16).padStart(2, '0')}`).join('')
  const wrong: string[] = []
  for (let first = 0; first < 256; first++) {
    for (const second of SECOND) {
      for (const rest of [[], [0x80], [0xbf, 0x80], [0x7f, 0x80], [0x80, 0xc0]]) {
        const text = encoded(first, second, ...rest)
        if (percentDecoded(text) !== expected(text)) wrong.push(text)
      }
    }
  }
  expect(wrong).toEqual([])
})
