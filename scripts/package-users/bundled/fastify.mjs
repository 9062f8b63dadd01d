// A limit of one request, in memory.
import assert from 'node:assert/strict'
import { rateLimit } from '@sluice/fastify'
import fastify from 'fastify'
import { main, responsesOf } from './support.mjs'

main(async () => {
  const app = fastify()
  await app.register(rateLimit, { limit: 1, window: '1h' })
  app.get('/', async () => 'done')
  await app.ready()
  const responses = await responsesOf(app.server, '/', '/')
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200, 429],
  )
  await app.close()
})
