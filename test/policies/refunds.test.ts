import { memoryStore, type Verdict } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies } from '@sluice/policies'
import { expect, test } from 'vitest'
import { contextOf } from '../support/context.js'

class Client {
  readonly user: string

  constructor(user: string) {
    this.user = user
  }
}

const plain = (limit = 3) => ({ key: 'user', limits: [{ limit, window: '1h' }] })
const tiered = { key: 'user', tier: 'plan', tiers: { free: plain().limits, paid: plain(9).limits } }
const other = { ...plain(), match: { paths: ['/other'] } }

async function serviceOf(...documents: object[]) {
  let document = 0
  const loaded = await policies.from({
    load: () => ({ version: 1, policies: documents[document] }),
    keys: { user: (request: Client) => request.user },
    tiers: { plan: () => 'free' },
    allowShrink: true,
  })
  const guard = createGuard<Client>({ policies: loaded, store: memoryStore() })
  return {
    limiter: guard.limiter,
    async verdictFor(client: Client) {
      const { verdict } = await guard(contextOf({ request: client, ip: '192.0.2.1' } as never) as never)
      return verdict as Verdict
    },
    change: () => {
      document++
      return loaded.reload()
    },
  }
}

const DOCUMENTS: [string, object, string][] = [
  ['one policy', { api: plain() }, 'api'],
  ['several policies', { api: plain(), other }, 'api'],
  ['a policy with tiers', { api: tiered }, 'api.free'],
  ['several policies with tiers', { api: tiered, other }, 'api.free'],
]

test.each(DOCUMENTS)('a verdict of %s is refunded by its key alone', async (_, document, tier) => {
  const { limiter, verdictFor } = await serviceOf(document)
  const ann = new Client('ann')
  expect(await limiter.refund(ann, await verdictFor(ann))).toBe(true)
  expect(await limiter.refund({ user: 'ann' } as never, await verdictFor(ann))).toBe(true)
  expect(await limiter.refund(ann, await limiter.consume(ann, { tier }))).toBe(true)
  expect(await limiter.refund('ann' as never, await limiter.acquire(ann, { tier }))).toBe(true)
  expect(await limiter.peek(ann, { tier })).toMatchObject({ remaining: 3 })
})

test.each(DOCUMENTS)('a verdict of %s is not refunded by the key of another client', async (_, document, tier) => {
  const { limiter, verdictFor } = await serviceOf(document)
  const ann = new Client('ann')
  const verdict = await verdictFor(ann)
  const wrong = 'key: expected the key the verdict was given for'
  await expect(limiter.refund(new Client('bob'), verdict)).rejects.toThrow(wrong)
  await expect(limiter.refund({ user: 'bob' } as never, verdict)).rejects.toThrow(wrong)
  await expect(limiter.refund({ ip: '192.0.2.1' } as never, verdict)).rejects.toThrow('key: expected')
  expect(await limiter.peek(ann, { tier })).toMatchObject({ remaining: 2 })
})

test('a verdict of a policy that has changed or is gone is refunded', async () => {
  const { limiter, verdictFor, change } = await serviceOf(
    { api: plain() },
    { api: { ...plain(9), key: 'ip' } },
    { other },
    { api: plain() },
  )
  const ann = new Client('ann')
  const verdicts = [await verdictFor(ann), await verdictFor(ann)]
  await change()
  expect(await limiter.refund({ user: 'ann' } as never, verdicts[0] as Verdict)).toBe(true)
  await change()
  expect(await limiter.refund(ann, verdicts[1] as Verdict)).toBe(true)
  await change()
  expect(await limiter.peek(ann)).toMatchObject({ remaining: 3 })
})
