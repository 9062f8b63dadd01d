// One process of a service that calls another one, and reports its figures, on the built packages as users get them.
import { limitedFetch, liveFigures, redisStore } from '@sluice/fetch'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
client.on('error', () => {})
const store = redisStore(client, { timeout: 10_000, report: liveFigures() })
await store.ready()
const api = limitedFetch(fetch, { name: 'partner', store })

process.on('message', async () => {
  const { status } = await api(process.env.SERVICE_URL ?? '')
  process.send?.(status)
})
// Never outlive the test.
process.once('disconnect', () => process.exit())
process.send?.('ready')
