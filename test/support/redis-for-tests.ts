import { afterAll } from 'vitest'
import { singleClients } from './clients.js'
import { startRedis } from './redis-server.js'

/** A Redis for the tests of a file, and a client connected to it. Both end after the hooks of the tests. */
export async function redisForTests() {
  const server = await startRedis()
  const { client, ready, close } = singleClients['ioredis 6'](server.port)
  afterAll(async () => {
    close()
    await server.stop()
  })
  await ready
  return { server, client }
}
