import { isIP } from 'node:net'
import { describe, expect, test } from 'vitest'
import { addressText, ipv6Words, plainAddress } from '../../../packages/core/src/util/ip-address.js'
import { masked, networkOf, rangeText } from '../../../packages/core/src/util/ip-range.js'
import { seeded } from '../lists/oracle-ranges.js'

/** Mostly zeros, so that runs of all lengths occur. */
function anyParts(random: () => number): string[] {
  return Array.from({ length: 8 }, () => (random() < 0.6 ? 0 : Math.floor(random() * 65_536)).toString(16))
}

describe('addresses as text', () => {
  test('an IPv6 address is written as in URLs', () => {
    const random = seeded(3)
    for (let n = 0; n < 2000; n++) {
      const text = anyParts(random).join(':')
      const words = ipv6Words(text) ?? expect.unreachable(text)
      expect(`[${addressText(words)}]`, text).toBe(new URL(`http://[${text}]/`).hostname)
    }
  })

  test('the network of an IPv6 address is written as the range of its prefix', () => {
    const random = seeded(4)
    for (let n = 0; n < 2000; n++) {
      const text = anyParts(random).join(':')
      const words = ipv6Words(text) ?? expect.unreachable(text)
      const prefix = 1 + Math.floor(random() * 127)
      expect(networkOf(words, prefix), `${text}/${prefix}`).toBe(rangeText(masked(words, prefix)))
    }
  })

  test("plainAddress accepts exactly the addresses of Node's isIP", () => {
    const random = seeded(5)
    const pieces = [
      '::',
      ':',
      '0',
      '00',
      '1',
      'f',
      'ffff',
      '12345',
      'g',
      '.',
      '1.2.3.4',
      '255',
      '256',
      '01',
      '0x7f',
      '%',
      '',
    ]
    for (let n = 0; n < 20_000; n++) {
      const text = Array.from(
        { length: 1 + Math.floor(random() * 9) },
        () => pieces[Math.floor(random() * pieces.length)],
      ).join('')
      if (text.includes('%')) continue
      expect(plainAddress(text) !== undefined, text).toBe(isIP(text) !== 0)
    }
  })

  test.each([
    '192.168',
    '127.1',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '192.168.000.1',
    '1.2.3.4.5',
    '::ffff:1.2.3',
    '3232235777',
  ])('plainAddress rejects %s', (text) => {
    expect(plainAddress(text)).toBeUndefined()
  })
})
