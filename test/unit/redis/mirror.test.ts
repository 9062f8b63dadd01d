import { expect, test } from 'vitest'
import type { IndexEntry } from '../../../packages/core/src/redis/blocks/entry.js'
import { Mirror } from '../../../packages/core/src/redis/blocks/mirror.js'
import { EVERY_POLICY, type Plan } from '../../../packages/core/src/store/store.js'

const NOW = 1_000_000
const HOUR = 3_600_000
const blocked = (identity: string, until = NOW + HOUR): IndexEntry => {
  return { policy: 'api', identity, until, since: NOW, times: 1, isEnded: false, encoded: '', isUnwritten: undefined }
}

test('a full mirror still takes networks, which Redis does not decide', () => {
  const mirror = new Mirror()
  for (let n = 0; n < 100_000; n++) mirror.set(blocked(`user=u${n}`), NOW)
  const find = (identity: string) => mirror.find({ policy: 'api' } as Plan, [identity], () => NOW)?.identity
  for (const identity of ['user=one-more', 'ip=198.51.100.7', 'ip=2001:db8:1:2::/64']) {
    mirror.set(blocked(identity), NOW)
    expect(find(identity), identity).toBeUndefined()
  }
  mirror.set(blocked('ip=192.0.2.0/24'), NOW)
  mirror.set(blocked('ip=2001:db8:7::/48'), NOW)
  expect(find('ip=192.0.2.9')).toBe('ip=192.0.2.0/24')
  expect(find('ip=2001:db8:7:9::/64')).toBe('ip=2001:db8:7::/48')
  expect(find('user=u99999')).toBe('user=u99999')
  expect(mirror.size).toBe(100_002)
})

test('a full mirror evicts bans of the lowest rung that end soonest, and keeps blocks by hand', () => {
  let fulls = 0
  const mirror = new Mirror(() => fulls++)
  const banned = (identity: string, rung: number, until: number, policy = 'api'): IndexEntry => {
    return { ...blocked(identity, until), policy, encoded: `\0${rung}/1000 3 ` }
  }
  const knows = (...identities: string[]) => identities.filter((identity) => mirror.get('api', identity))
  mirror.set(banned('user=second-rung', 2, NOW + HOUR), NOW)
  mirror.set(banned('user=later', 1, NOW + 2 * HOUR), NOW)
  mirror.set(banned('user=sooner', 1, NOW + HOUR), NOW)
  for (let n = 0; n < 99_997; n++) mirror.set(blocked(`user=u${n}`), NOW)
  expect(fulls).toBe(0)
  mirror.set(blocked('user=by-hand'), NOW)
  expect(knows('user=sooner', 'user=later', 'user=second-rung', 'user=by-hand')).toEqual([
    'user=later',
    'user=second-rung',
    'user=by-hand',
  ])
  expect(fulls).toBe(1)
  mirror.set(banned('user=soonest', 1, NOW + 1), NOW)
  mirror.set(banned('user=third-rung', 3, NOW + 1), NOW)
  expect(knows('user=soonest', 'user=later', 'user=second-rung', 'user=third-rung')).toEqual([
    'user=second-rung',
    'user=third-rung',
  ])
  // A prolonged ban keeps its rung.
  mirror.set(banned('user=second-rung', 2, NOW + 3 * HOUR), NOW)
  expect(mirror.isPartial).toBe(false)
  for (const n of [1, 2, 3]) mirror.set(blocked(`user=more-${n}`), NOW)
  expect(knows('user=third-rung', 'user=second-rung', 'user=more-1', 'user=more-2', 'user=more-3')).toEqual([
    'user=more-1',
    'user=more-2',
  ])
  expect({ size: mirror.size, fulls, isPartial: mirror.isPartial }).toEqual({
    size: 100_000,
    fulls: 1,
    isPartial: false,
  })
})

test('evicting a ban from every policy makes the mirror partial', () => {
  const mirror = new Mirror()
  mirror.set({ ...blocked('user=banned'), policy: EVERY_POLICY, encoded: '\x001/1000 3 ' }, NOW)
  for (let n = 0; n < 100_000; n++) mirror.set(blocked(`user=u${n}`), NOW)
  expect(mirror.isPartial).toBe(true)
})

test('a mirror that had no room for a block reads again once there is room', () => {
  const mirror = new Mirror()
  for (let n = 0; n < 100_001; n++) mirror.set(blocked(`user=u${n}`), NOW)
  expect(mirror.readsAgain(() => NOW)).toBe(false)
  for (let n = 0; n < 20_000; n++) mirror.delete('api', `user=u${n}`)
  expect(mirror.readsAgain(() => NOW)).toBe(true)
})
