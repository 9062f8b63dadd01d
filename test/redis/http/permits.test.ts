import { concurrency, everyone, redisStore } from '@sluice/core'
import { expect, test } from 'vitest'
import { type Handling, listen, PERMIT_APPS, type PermitAppFactory } from '../../http/support/permit-apps.js'
import { http1Client, stop } from '../../http/support/permit-clients.js'
import { redisForTests } from '../../support/redis-for-tests.js'
import { until } from '../../support/until.js'

const { client } = await redisForTests()

test('a client that disconnects holds its permit on Redis until the handler ends', async () => {
  const store = redisStore(client, { timeout: 5000 })
  const limits = [concurrency({ limit: 1, ttl: '1m' })]
  const handled: Handling[] = []
  const { server, limiter } = await (PERMIT_APPS.Fastify as PermitAppFactory)(
    [{ name: 'busy', key: everyone(), limits, store }],
    { takeOver: (handling) => handled.push(handling) },
  )
  const http = http1Client(await listen(server))
  try {
    const leaving = await http.ask('/raw')
    await until('the handler runs', () => handled[0])
    leaving.leave()
    await until('the server notices the disconnect', () => handled[0]?.raw.destroyed)
    expect(await (await http.ask()).status).toBe(429)
    handled[0]?.raw.end()
    await until('the permit is free', async () => (await limiter.peek('everyone')).remaining === 1)
    expect(await (await http.ask()).status).toBe(200)
  } finally {
    http.close()
    await stop(server)
    await store.close()
  }
})
