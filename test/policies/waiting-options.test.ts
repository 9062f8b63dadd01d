import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { responseToEnd } from '../support/response.js'

const ip = '192.0.2.1'
const hour = (limit: number) => ({ limit, window: '1h' })
const api = (limit: object, more: object = {}) => ({
  api: { limits: [limit], respond: { queue: { maxWait: '12h' } }, ...more },
})

/** A document that a test changes while a request waits, behind one that has used up the limit. */
async function waitingFor(first: object) {
  const { guard, limiter, change } = await changingPolicies({ policies: first })
  const request = () => {
    const { response, end } = responseToEnd()
    return { outcome: Promise.resolve(guard(contextOf({ ip, response }))), end }
  }
  const before = request()
  await before.outcome
  const { outcome, end } = request()
  await sleep(10)
  return {
    before,
    outcome,
    end,
    change: (next: object) => change({ policies: next }),
    remaining: async () => (await limiter.peek({ ip })).remaining,
  }
}

test('a request that waits holds its permit by the ttl in force at its turn', async () => {
  const permits = (ttl: string) => api({ algorithm: 'concurrency', limit: 1, ttl })
  const { outcome, change, remaining } = await waitingFor(permits('1h'))
  await change(permits('3s'))
  expect((await outcome).proceed).toBe(true)
  await sleep(3500)
  expect(await remaining()).toBe(0)
})

test('a request that waits counts by its outcome where that is in force at its turn', async () => {
  const { outcome, end, change, remaining } = await waitingFor(api(hour(1)))
  await change(api(hour(5), { count: { only: 'failure' } }))
  expect((await outcome).proceed).toBe(true)
  await end(200)
  expect(await remaining()).toBe(4)
})

test('a request that waits counts whatever its outcome is where that is in force at its turn', async () => {
  const { before, outcome, end, change, remaining } = await waitingFor(api(hour(1), { count: { only: 'failure' } }))
  await before.end(401)
  await change(api(hour(5)))
  expect((await outcome).proceed).toBe(true)
  await end(200)
  expect(await remaining()).toBe(3)
})

test('a request that waits is refused where the policy denies its client by then', async () => {
  const { outcome, change, remaining } = await waitingFor(api(hour(1)))
  await change(api(hour(5), { deny: { ip: [ip] } }))
  expect((await outcome).reply?.status).toBe(403)
  await change(api(hour(5)))
  expect(await remaining()).toBe(4)
})

test.each([
  ['does not limit its client', { allow: { ip: [ip] } }],
  ['is enforced for no client', { enforce: { percent: 0 } }],
])('a request that waits proceeds where the policy %s by then', async (_, more) => {
  const { outcome, change } = await waitingFor(api(hour(1)))
  await change(api(hour(1), more))
  expect(await Promise.race([outcome, sleep(1000)])).toMatchObject({ proceed: true })
})
