import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import makeFastify from 'fastify'
import { describe, expect, test } from 'vitest'

const MAKERS: Record<string, (options: never) => unknown> = {
  Express: express.rateLimit,
  Koa: koa.rateLimit,
  Fastify: async (options: never) => {
    await makeFastify().register(fastify.rateLimit, options)
  },
}

describe.each(Object.entries(MAKERS))('%s refuses when the limiter is made', (_name, make) => {
  test.each([
    ['no limit', {}, /policy "default": limit: expected a limit and a window/],
    ['a misspelt option', { limit: 1, windowMs: 1000 }, /windowMs: expected no such option/],
    [
      'a misspelt duration',
      { name: 'login', limit: 1, window: '1 minuite' },
      /policy "login": window: .* got "1 minuite"/,
    ],
    ['a name that could break a header', { name: 'a"\r\nb', limit: 1, window: 1 }, /name: expected 1 to 64 letters/],
    ['a fractional limit', { limit: 1.5, window: 1000 }, /limit: expected a whole number/],
    ['a negative cost', { limit: 1, window: 1000, cost: -1 }, /cost: expected a whole number of at least 0, got -1/],
    ['a cost in words', { limit: 1, window: 1000, cost: 'two' }, /cost: expected/],
    ['a skip that is no function', { limit: 1, window: 1000, skip: true }, /skip: expected a function/],
    ['a responder that is none', { limit: 1, window: 1000, respond: 429 }, /respond: expected a responder/],
    ['a store that is none', { limit: 1, window: 1000, store: {} }, /store: expected memoryStore\(\)/],
    ['a key that is no function', { limit: 1, window: 1000, key: 'ip' }, /key: expected a function/],
  ])('%s', async (_what, options, message) => {
    const error = await Promise.resolve()
      .then(() => make(options as never))
      .catch((error: unknown) => error)
    expect(error).toMatchObject({ code: 'INVALID_POLICY', message: expect.stringMatching(message) })
  })
})

describe('reject refuses', () => {
  test.each([[{ status: 200 }], [{ status: '429' }], [{ body: 5 }], [{ body: null }], [{ message: 'no' }], [null]])(
    '%o',
    (options) => {
      expect(() => express.reject(options as never)).toThrow(expect.objectContaining({ code: 'INVALID_POLICY' }))
    },
  )
})

test('every middleware carries its name and its limiter', async () => {
  for (const { rateLimit } of [express, koa]) {
    const middleware = rateLimit({ name: 'api', limit: 1, window: '1s' })
    expect(middleware.name).toBe('rateLimit')
    expect(middleware.limiter.name).toBe('api')
  }
  const app = makeFastify()
  await app.register(fastify.rateLimit, { global: false })
  expect(app.rateLimit({ name: 'api', limit: 1, window: '1s' }).name).toBe('rateLimit')
  expect(app.rateLimit({ name: 'api', limit: 1, window: '1s' }).limiter.name).toBe('api')
})
