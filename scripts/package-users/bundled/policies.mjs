// Policies of a document of 28 kB, which is read in a thread of its own.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { memoryStore, rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import express from 'express'
import { main, responsesOf } from './support.mjs'

const LINES = Array.from(
  { length: 400 },
  (_, i) => `  p${i}: { match: { paths: [/p${i}] }, limits: [{ limit: 1, window: 1h }] }`,
)
const DOCUMENT = ['version: 1', 'policies:', ...LINES].join('\n')

main(async () => {
  assert(DOCUMENT.length > 28_000)
  const loaded = await policies.from({ load: () => DOCUMENT })
  const app = express().use(rateLimit({ policies: loaded, store: memoryStore() }))
  const responses = await responsesOf(createServer(app), '/p399', '/p399')
  assert.deepEqual(
    responses.map(({ status }) => status),
    [404, 429],
  )
})
