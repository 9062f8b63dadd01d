import { createLimiter, fixedWindow, type Limiter, redisStore, type Verdict } from '@sluice/core'
import { expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { decided } from '../support/decided.js'
import { redisForTests } from '../support/redis-for-tests.js'
import { until } from '../support/until.js'

const { server, client } = await redisForTests()
const open = closedAfterEach()

const cost = (tokens: number) => ({ cost: { tokens } })

/** Two stores share no more than two processes do. */
async function limitersOfTwo(): Promise<[Limiter, Limiter]> {
  await server.flush()
  const made = ['here', 'there'].map(() => {
    const store = redisStore(client, { timeout: 5000 })
    open.push(() => store.close())
    const limits = [fixedWindow({ unit: 'tokens', limit: 100, window: '30d' })]
    return createLimiter({ name: 'chat', store, limits, charges: { keep: '1h' } })
  })
  return made as [Limiter, Limiter]
}

const WAYS: Record<string, (there: Limiter, verdict: Verdict) => Promise<unknown>> = {
  'settles the verdict': (_, verdict) => verdict.settle({ tokens: 40 }),
  'settles by id': (there, verdict) => there.settle(verdict.id as string, { tokens: 40 }),
  'refunds the verdict': (there, verdict) => there.refund('k', verdict),
  'refunds by id': (there, verdict) => there.refund(verdict.id as string),
  'resets the key': (there) => there.reset('k'),
  'ends a block': (there) => there.unblock('k'),
}

test.each(Object.keys(WAYS))('a request that waits is admitted when another process %s', async (way) => {
  const [here, there] = await limitersOfTwo()
  const verdict = await decided(there.consume('k', cost(way === 'ends a block' ? 0 : 100)))
  if (way === 'ends a block') await there.block('k', { for: '30d' })
  const waiting = here.acquire('k', cost(60))
  await until('it is refused', async () => !(await here.peek('k', cost(60))).allowed)
  await WAYS[way]?.(there, verdict)
  expect((await waiting).allowed).toBe(true)
})
