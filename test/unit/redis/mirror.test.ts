import { expect, test } from 'vitest'
import type { IndexEntry } from '../../../packages/core/src/redis/blocks/entry.js'
import { Mirror } from '../../../packages/core/src/redis/blocks/mirror.js'
import type { Plan } from '../../../packages/core/src/store/store.js'

const NOW = 1_000_000
const HOUR = 3_600_000
const blocked = (identity: string, until = NOW + HOUR): IndexEntry => {
  return { policy: 'api', identity, until, since: NOW, times: 1, isEnded: false, kept: '' }
}

test('a process that knows as many clients as it may goes on to learn of networks, which Redis does not decide', () => {
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
