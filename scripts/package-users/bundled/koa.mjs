// A limit of one request, in memory.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { rateLimit } from '@sluice/koa'
import Koa from 'koa'
import { main, responsesOf } from './support.mjs'

main(async () => {
  const app = new Koa()
  app.use(rateLimit({ limit: 1, window: '1h' }))
  app.use((ctx) => {
    ctx.body = 'done'
  })
  const responses = await responsesOf(createServer(app.callback()), '/', '/')
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200, 429],
  )
})
