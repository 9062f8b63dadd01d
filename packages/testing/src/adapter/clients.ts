import assert from 'node:assert/strict'
import { memoryStore } from '@sluice/core'
import type { RegisterTest } from './adapter-test.js'
import { send } from './client.js'

/** One request a client, with a store of its own. */
const once = () => ({ '/': { limiters: [{ store: memoryStore(), limit: 1, window: '10s' as const }] } })

const statusFrom = async (url: string, address: string) =>
  (await send(url, { headers: { 'X-Forwarded-For': address } })).status

export function clientTests(on: RegisterTest, proxies: boolean): void {
  on('X-Forwarded-For changes nothing unless the framework trusts its sender', async ({ start }) => {
    const { url } = await start({ routes: once() })
    assert.equal(await statusFrom(url, '198.51.100.1'), 200)
    assert.equal(await statusFrom(url, '198.51.100.2'), 429)
  })

  if (!proxies) return

  on('clients of a trusted proxy are distinguished by X-Forwarded-For', async ({ start }) => {
    const { url } = await start({ routes: once(), trustProxy: true })
    assert.equal(await statusFrom(url, '198.51.100.1'), 200)
    assert.equal(await statusFrom(url, '198.51.100.2'), 200)
    assert.equal(await statusFrom(url, '198.51.100.1'), 429)
  })

  on('an address is the same client in every spelling, and a /64 of IPv6 is one client', async ({ start }) => {
    const { url } = await start({ trustProxy: true, routes: once() })
    assert.equal(await statusFrom(url, '198.51.100.7'), 200)
    assert.equal(await statusFrom(url, '::ffff:198.51.100.7'), 429)
    assert.equal(await statusFrom(url, '::ffff:c633:6407'), 429)
    assert.equal(await statusFrom(url, '2001:db8:1:2::1'), 200)
    assert.equal(await statusFrom(url, '2001:db8:1:2:3:4:5:6'), 429)
    assert.equal(await statusFrom(url, '2001:db8:1:3::1'), 200)
  })
}
