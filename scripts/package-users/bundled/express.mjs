// A limit of one request, in memory.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { rateLimit } from '@sluice/express'
import express from 'express'
import { main, responsesOf } from './support.mjs'

main(async () => {
  const app = express().use(rateLimit({ limit: 1, window: '1h' }))
  app.get('/', (_req, res) => void res.send('done'))
  const [first, second] = await responsesOf(createServer(app), '/', '/')
  assert.deepEqual(first, { status: 200, text: 'done' })
  assert.equal(second?.status, 429)
})
