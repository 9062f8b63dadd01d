import { describe, expect, test } from 'vitest'
import { ipAddress } from '../../../packages/core/src/util/ip-address.js'
import { ipRange, rangeText } from '../../../packages/core/src/util/ip-range.js'
import { RangeMap } from '../../../packages/core/src/util/range-map.js'
import { byEffort } from '../../support/effort.js'
import { OracleRanges, randomAddress, randomRange, seeded } from '../lists/oracle-ranges.js'

const range = (text: string) => ipRange(text) ?? expect.unreachable(`${text} is a range`)
const address = (text: string) => ipAddress(text) ?? expect.unreachable(`${text} is an address`)

describe('RangeMap', () => {
  test('RangeMap finds the smallest range that holds an address', () => {
    const map = new RangeMap<string>()
    const all = ['10.0.0.0/8', '10.0.0.0/30', '10.0.0.1-10.0.0.3', '10.0.0.2', '10.255.255.255-11.0.0.0']
    for (const text of all) map.set(range(text), text)
    const found = (text: string, holds = (_: string) => true) => map.find(address(text), holds)
    expect(found('10.0.0.0')).toBe('10.0.0.0/30')
    expect(found('10.0.0.1')).toBe('10.0.0.1-10.0.0.3')
    expect(found('10.0.0.2')).toBe('10.0.0.2')
    expect(found('10.255.255.255')).toBe('10.255.255.255-11.0.0.0')
    expect(found('11.0.0.0')).toBe('10.255.255.255-11.0.0.0')
    expect(found('11.0.0.1')).toBeUndefined()
  })

  test('RangeMap finds the next larger range if the value of the smallest does not hold', () => {
    const map = new RangeMap<number>()
    for (const [text, until] of [
      ['2001:db8::/32', 3],
      ['2001:db8::/64', 2],
      ['2001:db8::7', 1],
    ] as const) {
      map.set(range(text), until)
    }
    const at = (now: number) => map.find(address('2001:db8::7'), (until) => until > now)
    expect([0, 1, 2, 3].map(at)).toEqual([1, 2, 3, undefined])
  })

  test('a range is found only by a range that holds all of it', () => {
    const map = new RangeMap<string>()
    for (const text of ['2001:db8::/48', '2001:db8::/72']) map.set(range(text), text)
    expect(map.find(range('2001:db8::/64'), () => true)).toBe('2001:db8::/48')
    expect(map.find(range('2001:db8::/80'), () => true)).toBe('2001:db8::/72')
  })

  test('after any changes RangeMap finds the same as an oracle', () => {
    for (let seed = 1; seed <= byEffort({ quick: 8, usual: 30, full: 1000 }); seed++) {
      const random = seeded(seed)
      const map = new RangeMap<string>()
      const stored = new Map<string, string>()
      for (let n = 0; n < 150; n++) {
        const [known = ''] = [...stored.keys()].slice(Math.floor(random() * stored.size))
        if (stored.size > 0 && random() < 0.45) {
          map.delete(range(known))
          stored.delete(known)
        } else {
          const text = random() < 0.1 && known ? known : rangeText(range(randomRange(random)))
          const value = `${text} ${n}`
          map.set(range(text), value)
          stored.set(text, value)
        }
        expect(map.size).toBe(stored.size)
        if (stored.size === 0) continue
        const oracle = new OracleRanges([...stored.keys()])
        const probe = randomAddress(random, [...stored.keys()])
        const found = map.find(address(probe), () => true)
        const [text = ''] = (found ?? '').split(' ')
        const size = found === undefined ? undefined : oracle.sizeOf(text)
        expect(size, `seed ${seed}, ${n}: ${probe}`).toEqual(oracle.smallest(probe))
        if (found !== undefined) expect(stored.get(text)).toBe(found)
      }
    }
  })
})
