// Release: runs examples.
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  compose,
  concurrency,
  createLimiter,
  fixedWindow,
  keyed,
  type Limiter,
  memoryStore,
  perMinute,
  redisStore,
  type Store,
  tokenBucket,
} from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { type Running, startOnPorts } from './programs.js'

const FRAMEWORKS = ['express', 'koa', 'fastify']
const ANSWER = new URL('../../../examples/tokens/answer.js', import.meta.url).pathname

let redis: RedisServer
let model: Running
/** Two processes of each framework, which share a Redis. */
const servers = new Map<string, Running[]>()
const trials = new Map<string, Limiter<string>>()
const clients: Redis[] = []

beforeAll(async () => {
  redis = await startRedis()
  model = await startOnPorts('tokens/model.js', { MS_PER_TOKEN: '1' })
  process.env.MODEL_URL = `${model.url}/v1/chat/completions`
  const starts = FRAMEWORKS.map(async (framework, database) => {
    const start = () => startOnPorts(`tokens/${framework}.js`, { REDIS_URL: `${redis.url}/${database}` })
    servers.set(framework, await Promise.all([start(), start()]))
  })
  for (const [database, framework] of FRAMEWORKS.entries()) {
    const client = new Redis(`${redis.url}/${database}`)
    clients.push(client)
    trials.set(framework, budgetOfTrial(redisStore(client, { timeout: 10_000 })))
  }
  await Promise.all(starts)
})
afterAll(async () => {
  delete process.env.MODEL_URL
  const ends = [...servers.values()].flat().map(({ program }) => program.end('SIGTERM'))
  expect(await Promise.all(ends)).toEqual(ends.map(() => 0))
  expect(await model.program.end('SIGTERM')).toBe(0)
  for (const client of clients) client.disconnect()
  await redis.stop()
})

/** The budget of the tenant `trial` for the model `large`. */
function budgetOfTrial(store: Store) {
  const byTenant = keyed('tenant', (tenant: string) => tenant)
  const byModel = compose(
    byTenant,
    keyed('model', () => 'large'),
  )
  const limits = [
    perMinute<string>(60, { key: byModel }),
    tokenBucket<string>({ unit: 'tokens', refill: 20_000, every: '1m', estimate: 'cap', key: byModel }),
    fixedWindow<string>({ unit: 'microdollars', limit: 10_000, window: '1d', anchor: 'first-request', key: byTenant }),
    concurrency<string>({ limit: 4, key: byTenant }),
  ]
  return createLimiter<string>({ name: 'chat', store, limits })
}

interface Chat {
  readonly prompt: string
  readonly key?: string
  readonly max_tokens?: number
  readonly signal?: AbortSignal
}

const statsOfModel = async () =>
  (await (await fetch(`${model.url}/stats`)).json()) as { running: number; most: number; tokens: number }

describe.each(FRAMEWORKS)('tokens/%s.js', (framework) => {
  let turn = 0
  /** Asks one process, then the other. */
  const post = (body: string, key: string, signal?: AbortSignal) => {
    const { url } = (servers.get(framework) as Running[])[turn++ % 2] as Running
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
    return fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body, ...(signal && { signal }) })
  }
  const ask = ({ prompt, key = 'sk-trial', max_tokens = 100, signal }: Chat) => {
    const messages = [{ role: 'user', content: prompt }]
    return post(JSON.stringify({ model: 'large', stream: true, max_tokens, messages, n: 9 }), key, signal)
  }
  const say = async (chat: Chat) => {
    const response = await ask(chat)
    return { status: response.status, text: await response.text() }
  }
  /** What is left to the tenant `trial`, by the limits of the example. */
  const left = async () => {
    const { units } = await (trials.get(framework) as Limiter<string>).peek('trial', {
      cost: { tokens: 0, microdollars: 0 },
    })
    return Object.fromEntries(Object.entries(units).map(([unit, { remaining }]) => [unit, remaining]))
  }
  const moneyLeft = async () => (await left()).microdollars as number

  test('a failure of the model costs a request and no tokens, and the client gets 502', async () => {
    expect((await say({ prompt: 'fail' })).status).toBe(502)
    expect(await left()).toMatchObject({ requests: 59, tokens: 20_000, microdollars: 10_000 })
    await until('the permit is released', async () => (await left())['concurrent-requests'] === 4)
  })

  test('requests without a known key or a chat get 4xx without internals, and no model', async () => {
    const before = await statsOfModel()
    const chat = { model: 'large', stream: true, messages: [{ role: 'user', content: 'hello' }] }
    const wrong = [{ model: 'made-up' }, { stream: false }, { messages: [] }, { messages: [null] }, { max_tokens: 1e9 }]
    const bodies = ['{', 'null', '[]', ...wrong.map((part) => JSON.stringify({ ...chat, ...part }))]
    const statuses: number[] = []
    for (const body of [...bodies, JSON.stringify({ ...chat, more: 'x'.repeat(300_000) })]) {
      const response = await post(body, 'sk-acme')
      statuses.push(response.status)
      expect(await response.text()).not.toMatch(/node_modules|examples|at /)
    }
    expect(statuses).toEqual([...bodies.map(() => 400), 413])
    for (const key of ['', 'sk', 'sk-acme x']) expect((await post(JSON.stringify(chat), key)).status).toBe(401)
    expect(await statsOfModel()).toEqual(before)
  })

  test.each([
    ['below the estimate', 'count to 20', 3 * 2.5 + 20 * 10],
    ['above the estimate', `1 ${'a '.repeat(1000)}`, 1001 * 2.5 + 10],
    ['without usage, as what was counted', 'count to 40 without usage', (7 + 4) * 2.5 + 40 * 10],
  ])('a response is settled %s', async (_what, prompt, price) => {
    const before = await moneyLeft()
    const { status, text } = await say({ prompt })
    expect([status, text.endsWith('data: [DONE]\n\n')]).toEqual([200, true])
    expect(await moneyLeft()).toBe(before - Math.ceil(price))
    await until('the permit is released', async () => (await left())['concurrent-requests'] === 4)
  })

  test('a stream that its client leaves is settled for what was produced, and its permit is released', async () => {
    const [before, { tokens }] = [await left(), await statsOfModel()]
    const leaving = new AbortController()
    const response = await ask({ prompt: 'count to 600', max_tokens: 600, signal: leaving.signal })
    let text = ''
    const read = async () => {
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        text += Buffer.from(chunk)
        if (text.includes('"30 "')) leaving.abort()
      }
    }
    await expect(read()).rejects.toThrow('abort')
    await until('the model stops', async () => (await statsOfModel()).running === 0)
    const produced = (await statsOfModel()).tokens - tokens
    expect(produced).toBeLessThan(600)
    const estimate = Math.ceil((3 + 4) * 2.5 + 600 * 10)
    let after = before
    await until('the permit is released, and the charge settled', async () => {
      after = await left()
      return (
        after['concurrent-requests'] === 4 &&
        (after.microdollars as number) > (before.microdollars as number) - estimate
      )
    })
    const spent = (before.microdollars as number) - (after.microdollars as number)
    expect(spent).toBeGreaterThanOrEqual(30 * 10)
    expect(spent).toBeLessThanOrEqual((3 + 4) * 2.5 + produced * 10 + 1)
  })

  test('four requests run at once over two processes, and others are refused before a stream begins', async () => {
    const leaving = new AbortController()
    const all = Array.from({ length: 10 }, () =>
      ask({ prompt: 'count to 4000', key: 'sk-acme', max_tokens: 4000, signal: leaving.signal }),
    )
    const responses = await Promise.all(all)
    const refused = responses.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(6)
    for (const { headers } of refused) {
      expect(headers.get('content-type')).toMatch(/^application\/problem\+json/)
      expect([Number(headers.get('retry-after')), Number(headers.get('retry-after-ms'))]).not.toContain(0)
      expect(headers.get('x-ratelimit-limit-requests')).toBe('60')
      expect(Number(headers.get('x-ratelimit-remaining-tokens'))).toBeGreaterThan(0)
    }
    expect(await statsOfModel()).toMatchObject({ running: 4, most: 4 })
    leaving.abort()
    await until('the model stops', async () => (await statsOfModel()).running === 0)
    await until(
      'there are permits again',
      async () => (await say({ prompt: 'count to 1', key: 'sk-acme-2' })).status === 200,
    )
  })

  test('a prompt beyond the tokens that are left is refused, with the wait that SDKs read', async () => {
    const leaving = new AbortController()
    const prompt = `count to 4000 ${'x'.repeat(60_000)}`
    const first = await ask({ prompt, key: 'sk-acme', max_tokens: 4000, signal: leaving.signal })
    const second = await ask({ prompt, key: 'sk-acme', max_tokens: 4000 })
    expect([first.status, second.status]).toEqual([200, 429])
    const ms = Number(second.headers.get('retry-after-ms'))
    expect(ms).toBeGreaterThan(0)
    expect(ms).toBeLessThan(60_000)
    expect(second.headers.get('retry-after')).toBe(String(Math.ceil(ms / 1000)))
    expect(await second.json()).toMatchObject({ 'violated-policies': ['tokens'] })
    leaving.abort()
  })

  test('a budget of money holds over two processes, and is used up to less than an estimate', async () => {
    const most = Math.ceil((3 + 4) * 2.5 + 100 * 10)
    const each = Math.ceil(3 * 2.5 + 60 * 10)
    const before = await moneyLeft()
    let served = 0
    const serve = async () => {
      const response = await ask({ prompt: 'count to 60' })
      await response.text()
      if (response.status === 200) served++
      else expect([response.status, response.headers.get('x-should-retry')]).toEqual([429, 'false'])
      return response.status === 200
    }
    const lane = async () => {
      while (await serve());
    }
    // Of four permits: each may have one of a response that has ended, and is being released.
    await Promise.all([lane(), lane()])
    // A process repeats a refusal for up to a second, while other requests return what they did not use.
    while ((await moneyLeft()) >= most) await serve()
    expect(await moneyLeft()).toBe(before - served * each)
    expect(await moneyLeft()).toBeGreaterThanOrEqual(0)
  })
})

describe('tokens/answer.js', () => {
  const start = async (tokens: number) => {
    const limits = [
      fixedWindow<string>({ unit: 'tokens', limit: tokens, window: '1d', anchor: 'first-request' }),
      fixedWindow<string>({ unit: 'microdollars', limit: 1_000_000, window: '1d', anchor: 'first-request' }),
    ]
    const limiter = createLimiter<string>({ name: 'chat', store: memoryStore(), limits })
    const verdict = await limiter.consume('acme', { cost: { tokens: 60, microdollars: 5000 } })
    const left = new AbortController()
    const messages = [{ role: 'user', content: 'count to 400' }]
    const chat = { model: 'large', messages, maxTokens: 500, promptTokens: 7 }
    const { answer } = await import(ANSWER)
    const events: AsyncGenerator<string> = answer(verdict, chat, left.signal)
    const used = async () => {
      const { units } = await limiter.peek('acme', { cost: { tokens: 0, microdollars: 0 } })
      return [tokens - (units.tokens?.remaining ?? 0), 1_000_000 - (units.microdollars?.remaining ?? 0)]
    }
    return { events, left, used }
  }

  test('a response ends as one that reaches max_tokens, when the tokens of its tenant are used up', async () => {
    const { events, used } = await start(200)
    let text = ''
    for await (const event of events) text += event
    expect(text).toContain('"200 "')
    expect(text).not.toContain('"300 "')
    expect(text).toMatch(/"finish_reason":"length"}\]}\n\ndata: \[DONE\]\n\n$/)
    const produced = text.match(/"content"/g)?.length as number
    expect(await used()).toEqual([200, Math.ceil(7 * 2.5 + produced * 10)])
  })

  test('a response that nobody reads is settled, also when the model has failed meanwhile', async () => {
    const { events, left, used } = await start(1000)
    for (let n = 0; n <= 5; n++) await events.next()
    left.abort()
    // The failure of the model's response is known before the end.
    await sleep(20)
    expect(await events.return(undefined)).toEqual({ done: true, value: undefined })
    expect(await used()).toEqual([7 + 5, Math.ceil(7 * 2.5 + 50)])
  })

  test('a response that takes too long is settled, though its reader waits', async () => {
    const { events, left, used } = await start(1000)
    await events.next()
    const body = Readable.from(events, { signal: left.signal })
    await once(body, 'readable')
    const failed = once(body, 'error')
    left.abort()
    await failed
    await until('the generator has ended', async () => (await used())[0] !== 60)
    const [tokens = 0] = await used()
    expect(tokens).toBeGreaterThan(7)
    expect(tokens).toBeLessThan(60)
  })

  test('a client that has left before the model is asked costs nothing', async () => {
    const { events, left, used } = await start(1000)
    left.abort()
    await expect(events.next()).rejects.toThrow('abort')
    expect(await used()).toEqual([0, 0])
  })
})
