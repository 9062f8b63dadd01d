import { BlockList, isIP } from 'node:net'
import { ipRanges } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { OracleRanges, randomAddress, randomRange, seeded } from './oracle-ranges.js'

const on = (ranges: string[], value: string) => ipRanges(ranges).match({ kind: 'ip', value })

describe('ipRanges', () => {
  test.each([
    ['192.0.2.7', '192.0.2.7', true],
    ['192.0.2.7', '192.0.2.8', false],
    ['192.0.2.0/24', '192.0.2.255', true],
    ['192.0.2.0/24', '192.0.3.0', false],
    ['192.0.2.77/24', '192.0.2.0', true],
    ['192.0.2.3-192.0.2.9', '192.0.2.9', true],
    ['192.0.2.3 - 192.0.2.9', '192.0.2.10', false],
    ['0.0.0.0/0', '255.255.255.255', true],
    ['0.0.0.0/0', '::1', false],
    ['255.255.255.255', '255.255.255.255', true],
    ['::/0', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff', true],
    ['::/0', '192.0.2.1', false],
    ['::/0', '::ffff:192.0.2.1', false],
    ['2001:db8::/32', '2001:db8:ffff::1', true],
    ['2001:db8::/32', '2001:db9::', false],
    ['2001:db8::1', '2001:0DB8:0:0:0:0:0:1', true],
    ['2001:db8::1', '2001:db8::2', false],
    ['2001:db8::a-2001:db8::f', '2001:db8::b', true],
    ['::ffff:192.0.2.0/120', '192.0.2.9', true],
    ['192.0.2.0/24', '::ffff:192.0.2.9', true],
    ['192.0.2.0/24', '::ffff:c000:0209', true],
    ['192.0.2.0/24', '64:ff9b::192.0.2.9', true],
    ['64:ff9b::c000:200/120', '192.0.2.9', true],
    ['192.0.2.0/24', '192.0.2.9:5555', true],
    ['2001:db8::/32', '[2001:db8::1]:80', true],
    ['fe80::/10', 'fe80::1%eth0', true],
  ])('ipRanges: %s holds %s: %s', (range, address, isIn) => {
    expect(on([range], address) !== undefined).toBe(isIn)
  })

  test('the smallest of overlapping ranges counts, also if neither holds the other', () => {
    const ranges = ['10.0.0.0/8', '10.1.0.0/16', '10.0.255.0-10.1.0.9', '10.1.0.5']
    expect(on(ranges, '10.0.0.1')?.size).toBe(2 ** 24)
    expect(on(ranges, '10.1.9.9')?.size).toBe(2 ** 16)
    expect(on(ranges, '10.1.0.9')?.size).toBe(266)
    expect(on(ranges, '10.1.0.5')?.size).toBe(1)
    expect(on(['2001:db8::/32', '2001:db8::/64'], '2001:db8:1::')?.size).toBe(2n ** 96n)
    expect(on(['2001:db8::/32', '2001:db8::/64'], '2001:db8::1')?.size).toBe(2n ** 64n)
  })

  test.each([
    '192.0.2.0/33',
    '192.0.2/24',
    '192.0.2.0/',
    '192.0.2.0/+8',
    '192.0.2.0/08',
    '192.0.2.010',
    '192.0.2.256',
    '192.0.2.9-192.0.2.3',
    '192.0.2.9-2001:db8::',
    '2001:db8::/129',
    '2001:db8:::1',
    ':1',
    '1:',
    '1:2:3:4:5:6:7:8:9',
    '1::2:3:4:5:6:7:8',
    'fe80::1%eth0',
    'example.com',
    '*',
    '',
  ])('ipRanges rejects %j with an error that names the entry', (range) => {
    expect(() => ipRanges(['192.0.2.1', range])).toThrow(
      expect.objectContaining({ code: 'INVALID_POLICY', message: expect.stringMatching(/^ipRanges: ranges\[1\]: /) }),
    )
  })

  test('a value that is not an address is in no range', () => {
    const all = ipRanges(['0.0.0.0/0', '::/0'])
    for (const value of ['', 'a', '1.2.3', '\0', '\ud800', '::ffff:1.2.3', 'x'.repeat(10_000), '1.2.3.4.5', ':::']) {
      expect(all.match({ kind: 'ip', value })).toBeUndefined()
    }
    expect(all.match({ kind: 'user', value: '192.0.2.1' })).toBeUndefined()
  })

  test('ipRanges agrees with an oracle on thousands of random look-ups', () => {
    for (let seed = 1; seed <= byEffort({ quick: 8, usual: 30, full: 1000 }); seed++) {
      const random = seeded(seed)
      const ranges = Array.from({ length: 1 + Math.floor(random() * 60) }, () => randomRange(random))
      const list = ipRanges(ranges)
      const oracle = new OracleRanges(ranges)
      for (let i = 0; i < 300; i++) {
        const address = randomAddress(random, ranges)
        const found = list.match({ kind: 'ip', value: address })
        expect(found && BigInt(found.size), `seed ${seed}: ${address} in ${ranges.join(' ')}`).toEqual(
          oracle.smallest(address),
        )
      }
    }
  })

  test("ipRanges agrees with Node's own BlockList", () => {
    const random = seeded(7)
    const ranges = Array.from({ length: 400 }, () => randomRange(random)).filter((range) => !range.includes('-'))
    const list = ipRanges(ranges)
    const node = new BlockList()
    for (const range of ranges) {
      const [base = '', bits] = range.split('/')
      const family = isIP(base) === 4 ? 'ipv4' : 'ipv6'
      if (bits === undefined) node.addAddress(base, family)
      else node.addSubnet(base, Number(bits), family)
    }
    for (let i = 0; i < 3000; i++) {
      const address = randomAddress(random, ranges)
      const isFound = list.match({ kind: 'ip', value: address }) !== undefined
      expect(isFound, address).toBe(node.check(address, isIP(address) === 4 ? 'ipv4' : 'ipv6'))
    }
  })
})
