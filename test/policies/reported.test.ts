import { EventEmitter } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { memoryStore, type Store } from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { unhandledDuring } from '../support/process-events.js'
import { withMethod } from '../support/with-method.js'

/** A store that replies after a while, as Redis does. */
function lateStore(ms: number): Store {
  const store = memoryStore()
  const decide: Store['decide'] = async (request) => {
    await sleep(ms)
    return store.decide(request)
  }
  return withMethod<Store>(store, 'decide', decide)
}

const hour = (limit: number) => ({ limit, window: '1h' })
const report = { enforce: { mode: 'report' } }
const ip = '192.0.2.1'

async function serviceOf(document: object, functions: object = {}) {
  const { guard } = await changingPolicies({ policies: document }, { store: lateStore(10), policies: functions })
  return {
    request: async (response = new EventEmitter()) => guard(contextOf({ ip, response })),
    peek: (identity: Record<string, string>, tier: string) => guard.limiter.peek(identity, { tier }),
  }
}

/** Expects that a request fails, and that no other of its failures ends the process. */
async function expectFailure(service: { request: () => Promise<unknown> }, message: string) {
  const unhandled = await unhandledDuring(async () => {
    await expect(service.request()).rejects.toThrow(message)
    await sleep(30)
  })
  expect(unhandled).toEqual([])
}

describe('a request that a policy in report mode counts beside others', () => {
  const fails = (ms: number, message: string) => async () => {
    await sleep(ms)
    throw new Error(message)
  }
  const costs = { one: () => 1, early: fails(0, 'early'), late: fails(5, 'late') }
  const serviceWith = (reported: string, enforced: string) =>
    serviceOf(
      {
        api: { limits: [hour(5)], cost: enforced },
        watch: { limits: [hour(5)], cost: reported, ...report },
      },
      { costs },
    )

  test.each([
    ['one', 'early', 'early'],
    ['one', 'late', 'late'],
    ['late', 'early', 'early'],
    ['early', 'late', 'late'],
  ])('fails where their functions do, %s and %s, and the process goes on', async (reported, enforced, message) => {
    const service = await serviceWith(reported, enforced)
    await expectFailure(service, message)
  })

  test('is charged to no other policy where it fails', async () => {
    const service = await serviceWith('late', 'one')
    await expect(service.request()).rejects.toThrow('late')
    expect((await service.peek({ ip }, 'api')).remaining).toBe(5)
  })

  test('holds no permit of it after its client has left', async () => {
    const service = await serviceOf(
      {
        api: { limits: [hour(1)], respond: { queue: { maxWait: '2h' } } },
        watch: { key: 'slow', limits: [{ algorithm: 'concurrency', limit: 3, ttl: '1h' }], ...report },
      },
      { keys: { slow: () => sleep(50, 'all') } },
    )
    const used = new EventEmitter()
    await service.request(used)
    const response = new EventEmitter()
    const waiting = service.request(response)
    await sleep(30)
    response.emit('close')
    expect((await waiting).proceed).toBe(false)
    await sleep(30)
    expect((await service.peek({ slow: 'all' }, 'watch')).remaining).toBe(2)
  })
})

test('a request whose tiers fail, one at once and one later, does not end the process', async () => {
  const tiers = { a: [hour(1)] }
  const service = await serviceOf(
    { one: { tier: 'late', tiers }, two: { tier: 'early', tiers } },
    {
      tiers: {
        late: () => sleep(5).then(() => Promise.reject(new Error('late'))),
        early: () => {
          throw new Error('early')
        },
      },
    },
  )
  await expectFailure(service, 'early')
})
