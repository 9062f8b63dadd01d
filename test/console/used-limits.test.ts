// Runs alone: it reads the figures of all stores of its process.
import { createLimiter, memoryStore, perMinute, type Store } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies } from '@sluice/policies'
import { afterEach, expect, test } from 'vitest'
import type { UsedRow } from '../../packages/console/src/figures/answers.js'
import { contextOf } from '../support/context.js'
import { until } from '../support/until.js'
import { ask, asOperator, startConsole } from './support.js'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close()
})

/** A console, and the figures of limits that it shows once so many decisions of a policy are reported. */
async function consoleOn(store: Store) {
  const port = await startConsole({ store, limiters: [] }, closing)
  return async (policy: string, decisions: number): Promise<readonly UsedRow[]> => {
    let used: readonly UsedRow[] = []
    await until('they are reported', async () => {
      used = (await ask(port, '/sluice/api/figures', { headers: asOperator(port) })).json.sum.used
      return used.some((row) => row.policy === policy && row.decisions === decisions)
    })
    return used
  }
}

test('used limits of a document are those of its policies and tiers, not of the limiter that decides by it', async () => {
  const store = memoryStore()
  const usedOf = await consoleOn(store)
  const document = await policies.from({
    object: {
      version: 1,
      policies: {
        login: { match: { paths: ['/login'] }, limits: [{ limit: 4, window: '1h' }] },
        all: {
          tier: 'plan',
          tiers: { free: [{ limit: 10, window: '1h' }], paid: [{ limit: 100, window: '1h' }] },
        },
      },
    },
    tiers: { plan: (request: { plan: string }) => request.plan },
  })
  closing.push(() => document.close())
  const guard = createGuard<{ plan: string }>({ policies: document, store })
  const visit = (path: string, plan: string) =>
    guard({ ...contextOf({ ip: '192.0.2.7', path }), request: { plan } } as never)
  await visit('/login', 'free')
  await visit('/login', 'free')
  await visit('/', 'paid')
  const used = await usedOf('all.paid', 1)
  const shown = used.map(({ policy, limit, decisions, p99 }) => [policy, limit, decisions, p99])
  expect(shown).toEqual(
    expect.arrayContaining([
      ['login', 'login', 2, 0.5],
      ['all.free', 'all', 2, 0.2],
      ['all.paid', 'all', 1, 0.1],
    ]),
  )
  expect(used.map(({ policy }) => policy)).not.toContain('default')
})

test('used limits of a limiter with tiers are apart by tier', async () => {
  const store = memoryStore()
  const usedOf = await consoleOn(store)
  const limiter = createLimiter({
    name: 'chat',
    store,
    tiers: { free: [perMinute(2)], paid: [perMinute(20)] },
    tier: (user: string) => (user === 'ann' ? 'paid' : 'free'),
  } as never) as { consume(user: string): Promise<unknown> }
  for (const user of ['ann', 'bob', 'bob']) await limiter.consume(user)
  const used = await usedOf('chat.free', 2)
  const rows = used.filter(({ policy }) => policy.startsWith('chat'))
  expect(rows.map(({ policy, limit, p99 }) => [policy, limit, p99])).toEqual([
    ['chat.paid', 'chat', 0.1],
    ['chat.free', 'chat', 1],
  ])
})
