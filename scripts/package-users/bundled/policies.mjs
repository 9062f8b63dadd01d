// Policies of a document of 28 kB, which is read in a thread of its own.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { memoryStore, rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import express from 'express'

/** @param {number} limit of all policies */
const documentOf = (limit) =>
  [
    'version: 1',
    'policies:',
    ...Array.from(
      { length: 400 },
      (_, i) => `  p${i}: { match: { paths: [/p${i}] }, limits: [{ limit: ${limit}, window: 1h }] }`,
    ),
  ].join('\n')

async function main() {
  assert(documentOf(1).length > 28_000)
  const loaded = await policies.from({ load: () => documentOf(1) })
  const server = createServer(express().use(rateLimit({ policies: loaded, store: memoryStore() })))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const statuses = []
  for (let n = 0; n < 2; n++) {
    const { status } = await fetch(`http://127.0.0.1:${server.address().port}/p399`)
    statuses.push(status)
  }
  assert.deepEqual(statuses, [404, 429])
  server.close()
  server.closeAllConnections()
  console.log('works')
}

void main()
