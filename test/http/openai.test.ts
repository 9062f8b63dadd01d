import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fixedWindow, gcra, type Limit, memoryStore, perMinute, tokenBucket } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import express, { type Request, type Response } from 'express'
import OpenAI from 'openai'
import { afterEach, expect, test } from 'vitest'

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close().closeAllConnections()
})

/** A service of a language model: a token is a word, and a request is charged `max_tokens` first. */
async function start(limits: readonly Limit<Request>[]) {
  const statuses: number[] = []
  // Time passes from the first refusal on, so that a slow machine reaches it too.
  let refusedAt: number | undefined
  const clock = () => Math.floor(1_000_000 + (refusedAt === undefined ? 0 : performance.now() - refusedAt))
  const app = express()
  app.use(express.json())
  app.use((_req, res, next) => {
    res.on('finish', () => statuses.push(res.statusCode))
    next()
  })
  app.post(
    '/v1/chat/completions',
    rateLimit({
      name: 'chat',
      limits,
      headers: 'openai',
      store: memoryStore({ clock }),
      cost: { tokens: (req) => Number(req.body.max_tokens ?? 1) },
      onVerdict(_req, { allowed }) {
        if (!allowed) refusedAt ??= performance.now()
      },
    }),
    (req, res) => (req.body.stream ? streamed(req, res) : res.json(completion({ message: word(0) }))),
  )
  const server = createServer(app).listen(0)
  servers.push(server)
  await new Promise((resolve) => server.once('listening', resolve))
  const baseURL = `http://localhost:${(server.address() as AddressInfo).port}/v1`
  return { client: new OpenAI({ baseURL, apiKey: 'none', maxRetries: 1 }), statuses }
}

async function streamed(req: Request, res: Response): Promise<void> {
  res.setHeader('Content-Type', 'text/event-stream')
  const send = (choice: object, reason: string | null) =>
    res.write(`data: ${JSON.stringify(completion({ ...choice, finish_reason: reason }, '.chunk'))}\n\n`)
  const meter = req.rateLimit?.meter('tokens', { step: 8 })
  let reason: 'stop' | 'length' = 'stop'
  for (let n = 0; n < 500; n++) {
    send({ delta: word(n) }, null)
    if (await meter?.add(1)) continue
    reason = 'length'
    break
  }
  await meter?.end()
  send({ delta: {} }, reason)
  res.end('data: [DONE]\n\n')
}

const word = (n: number) => ({ role: 'assistant', content: `word ${n} ` })
const completion = (choice: object, kind = '') => ({
  id: 'one',
  object: `chat.completion${kind}`,
  created: 1,
  model: 'fake',
  choices: [{ index: 0, ...choice }],
})
const ask = (max_tokens: number) => ({
  model: 'fake',
  max_tokens,
  messages: [{ role: 'user' as const, content: 'hello' }],
})

test.each<[string, Limit<Request>, number]>([
  ['a token bucket', tokenBucket({ unit: 'tokens', refill: 100, every: '10s' }), 9],
  ['a bucket with less than a second to wait', gcra({ unit: 'tokens', limit: 1000, window: '10s' }), 30],
  ['a window', fixedWindow({ unit: 'tokens', limit: 1000, window: '1500ms', anchor: 'first-request' }), 10],
])("OpenAI's client waits as the headers say, and no longer fails: %s", async (_what, limit, tokens) => {
  const { client, statuses } = await start([perMinute(60), limit])
  await client.chat.completions.create(ask(limit.limit as number))
  const { data, response } = await client.chat.completions.create(ask(tokens)).withResponse()
  expect(data.choices[0]?.message.content).toBe('word 0 ')
  expect(statuses).toEqual([200, 429, 200])
  expect(response.headers.get('x-ratelimit-limit-tokens')).toBe(String(limit.limit))
  expect(response.headers.get('x-ratelimit-remaining-requests')).toBe('58')
})

test("a stream that OpenAI's client reads ends at the budget of tokens, with a reason", async () => {
  const { client, statuses } = await start([perMinute(60), fixedWindow({ unit: 'tokens', limit: 50, window: '1h' })])
  const stream = await client.chat.completions.create({ ...ask(10), stream: true })
  const reasons: unknown[] = []
  let words = 0
  for await (const { choices } of stream) {
    if (choices[0]?.delta.content) words++
    else reasons.push(choices[0]?.finish_reason)
  }
  expect(reasons).toEqual(['length'])
  expect(words).toBeGreaterThanOrEqual(50)
  expect(words).toBeLessThanOrEqual(50 + 8)
  await expect(client.chat.completions.create(ask(10), { maxRetries: 0 })).rejects.toMatchObject({ status: 429 })
  expect(statuses).toEqual([200, 429])
})
