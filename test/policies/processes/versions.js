// One process of a service, on the built packages as users get them, which decides by the version of a document that it
// receives.
import { createLimiter, redisStore } from '@sluice/core'
import { policies } from '@sluice/policies'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
// Patient: this test is about how many are admitted on a busy machine, not about how fast.
const store = redisStore(client, { timeout: 15_000 })

/** @param {{ document: object, user: string, requests: number }} run */
async function decide({ document, user, requests }) {
  /** @type {(request: { user: string }) => string} */
  const byUser = (request) => request.user
  const loaded = await policies.from({ object: document, keys: { user: byUser } })
  const limiter = createLimiter({
    name: 'default',
    store,
    limits: [...(loaded.byName.get('api')?.options.limits ?? [])],
  })
  const verdicts = await Promise.all(Array.from({ length: requests }, () => limiter.consume({ user })))
  process.send?.(verdicts.filter(({ allowed }) => allowed).length)
}

process.on('message', decide)
// Never outlive the test.
process.once('disconnect', () => process.exit())
client.once('ready', () => process.send?.('ready'))
