import { createLimiter, memoryStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import express from 'express'
import request from 'supertest'
import { expect, test } from 'vitest'
import { until } from '../support/until.js'

test('a request that does not count is refunded by the record of its charge, and its client sees no id', async () => {
  const store = memoryStore()
  const policy = { name: 'count', store, limit: 5, window: '1m', charges: { keep: '1h' } } as const
  const limiter = rateLimit({ ...policy, count: { only: 'failure' } })
  const elsewhere = createLimiter<string>({ ...policy })
  const ids: string[] = []
  const app = express()
  app.use(limiter)
  app.get('/:status', (req, res) => {
    ids.push(req.rateLimit?.id as string)
    res.status(Number(req.params.status)).json({ verdict: req.rateLimit, copy: { ...req.rateLimit } })
  })
  const left = async () => (await limiter.limiter.peek({ ip: '127.0.0.1' } as never)).remaining
  const responses = [await request(app).get('/200'), await request(app).get('/404')]
  const [success, failure] = ids as [string, string]
  expect([success, failure]).toEqual([expect.stringMatching(/^[\w-]{22}$/), expect.stringMatching(/^[\w-]{22}$/)])
  for (const { text, headers } of responses) {
    expect(text + JSON.stringify(headers)).not.toContain(success)
    expect(text + JSON.stringify(headers)).not.toContain(failure)
  }
  await until('the success is refunded', async () => (await left()) === 4)
  expect(await elsewhere.refund(success)).toBe('done before')
  expect(await elsewhere.refund(failure)).toBe('done')
  expect(await left()).toBe(5)
})
