import { concurrency, createLimiter, everyone, leakyBucket, memoryStore, queue } from '@sluice/core'
import { expect, test } from 'vitest'
import { until } from '../support/until.js'
import { run } from './support/app.js'
import { FRAMEWORKS } from './support/frameworks.js'

const [factory] = Object.values(FRAMEWORKS) as [(typeof FRAMEWORKS)[keyof typeof FRAMEWORKS]]

/**
 * Two requests of one client wait for a permit, and then for turns of a leaky bucket. Meanwhile so many others arrive
 * that the second would be served after its maxWait. Undefined if they did not arrive soon enough for that.
 */
async function overtaken(unitMs: number): Promise<{ statuses: number[]; left: number } | undefined> {
  const store = memoryStore()
  const permits = concurrency<unknown>({ name: 'permits', limit: 100, ttl: '1h', key: everyone() })
  const turns = leakyBucket<unknown>({ leak: 1, every: unitMs, capacity: 1000, queue: true, key: everyone() })
  let arrived = 0
  const cost = () => {
    arrived++
    return 1
  }
  const line = { name: 'booked', store, limits: [permits, turns] }
  const respond = queue<unknown>({ maxWait: 60 * unitMs })
  const app = await run(factory, { trustProxy: true, routes: { '/': { limiters: [{ ...line, cost, respond }] } } })
  try {
    const holder = createLimiter<unknown>({ ...line, limits: [permits], warnings: { SLUICE_SAME_NAME: false } })
    const taken = await holder.consume({}, { cost: { 'concurrent-requests': 100 } })
    await createLimiter<unknown>({ ...line, limits: [turns] }).consume({}, { cost: 30 })
    const began = performance.now()
    const send = async (from: string) => {
      const before = arrived
      const response = fetch(app.url, { headers: { 'x-forwarded-for': from } })
      await until(`${from} has arrived`, () => arrived > before)
      return { response }
    }
    const own = [await send('192.0.2.1'), await send('192.0.2.1')]
    await holder.release(taken)
    const peek = createLimiter<unknown>({ ...line, limits: [permits] })
    await until('both have permits', async () => (await peek.peek({})).remaining <= 98)
    const others: { response: Promise<Response> }[] = []
    for (let n = 0; n < 50; n++) others.push(await send(`198.51.100.${n}`))
    const isSoon = performance.now() - began < 20 * unitMs
    const statuses = await Promise.all(own.map(async ({ response }) => (await response).status))
    for (const { response } of others) await response
    const left = await until('permits are released', async () => {
      const { remaining } = await peek.peek({})
      return remaining === 100 && remaining
    })
    return isSoon ? { statuses, left } : undefined
  } finally {
    await app.close()
    await store.close()
  }
}

test('a request overtaken in a queueing limit is refused after maxWait, and holds nothing', async () => {
  for (let unitMs = 20; ; unitMs *= 2) {
    const found = await overtaken(unitMs)
    if (!found) continue
    expect(found).toEqual({ statuses: [200, 503], left: 100 })
    break
  }
})
