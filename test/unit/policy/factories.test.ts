import * as express from '@sluice/express'
import * as fastify from '@sluice/fastify'
import * as koa from '@sluice/koa'
import { describe, expect, test } from 'vitest'

const { byIp, compose, createLimiter, keyed, memoryStore, perMinute, queue, reject } = express
const { byCookie, byHeader, byMethod, byPath, byRoute, byUser, degrade, delay, everyone, pass, shadow, tarpit } =
  express
const KEYS = { byIp, byPath, byRoute, byMethod, everyone, byUser, byHeader, byCookie, keyed, compose }
const RESPONDERS = { reject, pass, delay, queue, degrade, shadow, tarpit }
const limits = { limit: 1, window: '1m' } as const

describe('a factory passed without its call', () => {
  test.each([
    ['byIp', 'byIp()'],
    ['byPath', 'byPath()'],
    ['byRoute', 'byRoute()'],
    ['byMethod', 'byMethod()'],
    ['everyone', 'everyone()'],
    ['byUser', 'byUser((req) => …)'],
    ['byHeader', 'byHeader(name)'],
    ['byCookie', 'byCookie(name)'],
    ['keyed', 'keyed(name, fn)'],
    ['compose', 'compose(byIp(), byPath())'],
  ] as const)('a key factory passed without its call is rejected: %s', (name, call) => {
    const key = KEYS[name] as never
    const write = `key: write ${call}: expected what ${name} returns, got ${name} itself`
    expect(() => express.rateLimit({ ...limits, key })).toThrow(write)
    expect(() => createLimiter({ ...limits, key })).toThrow(write)
    expect(() => perMinute(1, { key })).toThrow(write)
    expect(() => keyed('mine', key)).toThrow(write)
    expect(() => compose(byIp(), key)).toThrow(`compose: keys[1]: write ${call}`)
    for (const responder of [queue, delay]) expect(() => responder({ fairBy: key })).toThrow(`fairBy: write ${call}`)
  })

  test.each(['reject', 'pass', 'delay', 'queue', 'degrade', 'shadow', 'tarpit'] as const)(
    'a responder factory passed without its call is rejected: %s',
    (name) => {
      const respond = RESPONDERS[name] as never
      const write = `respond: write ${name}(): expected what ${name} returns, got ${name} itself`
      expect(() => koa.rateLimit({ ...limits, respond })).toThrow(write)
      expect(() => perMinute(1, { respond })).toThrow(write)
      expect(() => queue({ otherwise: respond })).toThrow(`queue: otherwise: write ${name}()`)
    },
  )

  test('handler and throttle passed without their call are rejected in every framework', () => {
    for (const { handler } of [express, koa, fastify]) {
      expect(() => express.rateLimit({ ...limits, respond: handler as never })).toThrow(/respond: write handler\(\(/)
    }
    expect(() => express.rateLimit({ ...limits, respond: express.throttle as never })).toThrow(
      'respond: write throttle({ bytesPerSecond })',
    )
  })

  test('the value that a factory returns is accepted', () => {
    expect(() => express.rateLimit({ ...limits, key: byIp(), respond: reject(), store: memoryStore() })).not.toThrow()
  })
})
