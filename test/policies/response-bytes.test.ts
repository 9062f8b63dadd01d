import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { type PoliciesOptions, policies } from '@sluice/policies'
import express from 'express'
import { expect, test } from 'vitest'
import { receive } from '../http/support/receive.js'

const DAY = { algorithm: 'fixedWindow', limit: 200_000, window: '1d', unit: 'response-bytes', anchor: 'first-request' }

async function serve(own: object, options: object = {}) {
  const loaded = await policies.from({ object: { version: 1, policies: own } } as PoliciesOptions)
  const limiter = rateLimit({ policies: loaded, store: memoryStore(), ...options })
  const app = express()
  app.use(limiter)
  app.use((_req, res) => void res.end(Buffer.alloc(500_000)))
  const server = createServer(app).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const close = async () => {
    server.close()
    await loaded.close()
  }
  return { loaded, limiter, port: (server.address() as AddressInfo).port, close }
}

const both = { api: { limits: [{ limit: 10, window: '1m' }] }, downloads: { limits: [DAY] } }

test('a document limits bytes of responses, beside limits of requests', async () => {
  const { loaded, port, close } = await serve(both)
  const cut = await receive(port)
  expect([cut.status, cut.isWhole]).toEqual([200, false])
  expect(cut.body.length).toBeLessThanOrEqual(200_000 + 64 * 1024)
  expect((await receive(port)).status).toBe(429)
  const [, downloads] = await loaded.explain({ path: '/' })
  expect(downloads?.limits).toEqual([
    { name: 'downloads', algorithm: 'fixedWindow', limit: 200_000, window: 86_400_000, unit: 'response-bytes' },
  ])
  await close()
})

test('a responder in the document, or onExhausted, decides about a response over its limit', async () => {
  const finishing = await serve(both, { onExhausted: 'finish' })
  expect((await receive(finishing.port)).isWhole).toBe(true)
  expect((await receive(finishing.port)).status).toBe(429)
  await finishing.close()
  const respond = { throttle: { bytesPerSecond: 10_000_000 } }
  const slowing = await serve({ ...both, downloads: { limits: [DAY], respond } })
  for (let i = 0; i < 2; i++) expect((await receive(slowing.port)).isWhole).toBe(true)
  await slowing.close()
})

test('onExhausted is accepted without a limit of response bytes, as a later document may have one', async () => {
  const app = await serve({ api: both.api }, { onExhausted: 'finish' })
  expect((await receive(app.port)).status).toBe(200)
  await app.close()
})

test('count beside a limit of response bytes is rejected with the document', async () => {
  const object = { version: 1, policies: { downloads: { count: { only: 'failure' }, limits: [DAY] } } }
  await expect(policies.from({ object } as PoliciesOptions)).rejects.toThrow(
    'policies.downloads.count: expected none beside limits of response-bytes: give them a policy of their own',
  )
})
