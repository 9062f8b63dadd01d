import {
  byCookie,
  byIp,
  concurrency,
  createLimiter,
  delay,
  fileList,
  gcra,
  ipRanges,
  leakyBucket,
  list,
  memoryStore,
  queue,
  redisStore,
  reject,
  shadow,
  startLogging,
  tarpit,
  tokenBucket,
  trap,
} from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { expect, test } from 'vitest'
import { whilePolluted } from '../../support/polluted.js'

const some = { limit: 5, window: '1m' } as const
const ban = { after: 3, within: '1m', for: ['1h'] } as const

test.each<[string, unknown, () => unknown]>([
  ['skip', () => true, () => createGuard(some)],
  ['policies', { match: () => undefined }, () => createGuard(some)],
  ['mode', 'report', () => createGuard(some)],
  ['allow', () => true, () => createLimiter(some)],
  ['unavailable', { decide: 'allow' }, () => createLimiter(some)],
  ['decide', 'allow', () => createLimiter(some)],
  ['cost', 0, () => createLimiter(some)],
  ['fresh', true, () => createLimiter(some)],
  ['burst', 1e6, () => gcra(some)],
  ['unit', 'response-bytes', () => tokenBucket({ refill: 5, every: '1m' })],
  ['queue', true, () => leakyBucket({ capacity: 1, leak: 1, every: '1s' })],
  ['maxHold', 1, () => concurrency({ limit: 5 })],
  ['scope', 'store', () => createLimiter({ ...some, ban })],
  ['jitter', 5, () => createLimiter({ ...some, ban })],
  ['lists', [], () => createGuard({ ...some, deny: { lists: list({ ip: ['192.0.2.1'] }) } })],
  ['weight', 5, () => trap(['/.env'])],
  ['ipv4Prefix', 0, () => byIp()],
  ['ipv6Prefix', 0, () => byIp()],
  ['signed', true, () => byCookie('sid')],
  ['status', 200, () => reject()],
  ['from', 0.5, () => delay({ max: '1s' })],
  ['maxWait', 1, () => queue({ size: 5 })],
  ['answer', 'x', () => tarpit({ for: '1s' })],
  ['contentType', 'text/plain', () => shadow({ status: 200, body: '' })],
  ['allowShrink', true, () => fileList('/nowhere')],
  ['keys', 'plain', () => startLogging({ logger: console })],
  ['maxKeys', 1, () => memoryStore()],
  ['clock', () => 0, () => redisStore({} as never)],
])('options are rejected while Object.prototype has %s', async (name, value, make) => {
  const error = await whilePolluted(name, value, make).catch((error) => error)
  expect(error).toMatchObject({
    code: 'INVALID_POLICY',
    message: expect.stringContaining(`: ${name}: expected no property of this name on Object.prototype`),
  })
})

test('options are rejected while Object.prototype has a getter of their name, which is not called', async () => {
  let calls = 0
  Object.defineProperty(Object.prototype, 'skip', { get: () => ++calls, configurable: true })
  try {
    expect(() => createGuard(some)).toThrow(/skip: expected no property/)
  } finally {
    delete (Object.prototype as { skip?: unknown }).skip
  }
  expect(calls).toBe(0)
})

test('methods reject their options while Object.prototype has one of them', async () => {
  const limiter = createLimiter(some)
  const calls: [string, unknown, () => Promise<unknown>][] = [
    ['maxWait', 1, () => limiter.acquire('a')],
    ['reason', 'x', () => limiter.block('a', { for: '1m' })],
    ['policy', 'x', async () => memoryStore().blocks.list({})],
  ]
  for (const [name, value, call] of calls) {
    await expect(whilePolluted(name, value, call)).rejects.toThrow(`${name}: expected no property of this name`)
  }
})

test.each([
  ['cost', 0],
  ['tier', 'free'],
])('decisions ignore %s of Object.prototype that was polluted after the limiter was made', async (name, value) => {
  const limiter = createLimiter({ ...some, limit: 1 })
  await whilePolluted(name, value, async () => {
    expect((await limiter.consume('a')).cost).toBe(1)
    expect((await limiter.peek('a')).allowed).toBe(false)
    await expect(limiter.consume('b', {})).rejects.toThrow(`${name}: expected no property of this name`)
  })
})

test.each([
  ['needs', 1],
  ['needs', [0]],
  ['lease', { size: 2, ttlMs: 1000 }],
  ['block', { reason: '', remainingMs: 1 }],
  ['waitMs', 1],
  ['hasLeft', true],
  ['tryAgainMs', 0],
  ['like', {}],
  ['carry', 'x'],
])('a limit holds while Object.prototype has %s', async (name, value) => {
  const limit = () => 1
  for (const options of [{ limit: 1, window: '1m' } as const, { limit, window: '1m' } as const]) {
    const limiter = createLimiter(options)
    await whilePolluted(name, value, async () => {
      expect((await limiter.consume('a')).reason).toBe(undefined)
      expect((await limiter.consume('a')).reason).toBe('limited')
    })
  }
})

test('a polluted prototype gets no verdicts, which promises would pass to its then', async () => {
  const limiter = createLimiter(some)
  const value = (resolve: (value: unknown) => void) => resolve('taken')
  Object.defineProperty(Object.prototype, 'then', { value, configurable: true })
  const decided = limiter.consume('a')
  delete (Object.prototype as { then?: unknown }).then
  expect((await decided).allowed).toBe(true)
})

test('Object.prototype may have properties that are not options', async () => {
  await whilePolluted('isEmpty', true, () => createGuard({ ...some, deny: ipRanges(['192.0.2.0/24']) }))
})

test('options may be getters or instances of classes', async () => {
  class Base {
    limit = 2
    window = '1m' as const
    get name() {
      return 'inherited'
    }
  }
  class Options extends Base {
    cost = 2
  }
  const getters = {
    get limit() {
      return 2
    },
    get window() {
      return '1m' as const
    },
  }
  expect(createLimiter(new Base()).name).toBe('inherited')
  expect((await createLimiter(getters).consume('a', { cost: 2 })).remaining).toBe(0)
  expect(createGuard(new Options()).limiter.limits).toMatchObject([{ limit: 2 }])
})
