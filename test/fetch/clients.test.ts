// Release: the clients of users, with real waits.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import Anthropic from '@anthropic-ai/sdk'
import { startCounting } from '@sluice/core/metrics'
import { rateLimit } from '@sluice/express'
import { createTurns, limitedFetch, type OutboundTurn, perSecond, tokenBucket } from '@sluice/fetch'
import axios from 'axios'
import express from 'express'
import got from 'got'
import OpenAI from 'openai'
import { expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { type ServiceOptions, startService } from './service.js'

const open = closedAfterEach()

async function serviceOf(options: ServiceOptions) {
  const service = await startService(options)
  open.push(() => service.close())
  return service
}

const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make))

test('OpenAI: its SDK sends no request that is refused', async () => {
  const service = await serviceOf({ dialect: 'openai', limit: 20, windowMs: 1000 })
  const client = new OpenAI({ apiKey: 'a', baseURL: service.url, fetch: limitedFetch(fetch) })
  await times(40, () => client.chat.completions.create({ model: 'm', messages: [] }))
  expect(service.admitted).toBe(40)
  expect(service.refusedAt).toEqual([])
})

test('Anthropic: its SDK sends no request that is refused', async () => {
  const service = await serviceOf({ dialect: 'anthropic', limit: 20, windowMs: 1000 })
  const client = new Anthropic({ apiKey: 'a', baseURL: service.url, fetch: limitedFetch(fetch) })
  await times(40, () => client.messages.create({ model: 'm', max_tokens: 1, messages: [] }))
  expect(service.admitted).toBe(40)
  expect(service.refusedAt).toEqual([])
})

/** A model that streams events, and the units that it is charged. */
async function modelOf(name: string, events: readonly object[]) {
  const counting = startCounting()
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    for (const event of events) {
      response.write(`event: ${(event as { type?: string }).type ?? 'message'}\ndata: ${JSON.stringify(event)}\n\n`)
    }
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    counting.stop()
    server.close()
  })
  const limits = [tokenBucket({ unit: 'tokens', refill: 30_000, every: '1m' })]
  return {
    options: {
      apiKey: 'a',
      baseURL: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      fetch: limitedFetch(fetch, { name, limits }),
    },
    tokens() {
      const row = counting.read().units.find(({ policy, unit }) => policy === name && unit === 'tokens')
      return row && row.charged - row.refunded
    },
  }
}

test('a stream of the SDK of OpenAI is charged its usage', async () => {
  const { options, tokens } = await modelOf('openai-stream', [
    { choices: [{ index: 0, delta: { content: 'Hello' } }] },
    { choices: [], usage: { prompt_tokens: 9, completion_tokens: 12 } },
  ])
  const messages = [{ role: 'user' as const, content: 'Hello' }]
  const stream = await new OpenAI(options).chat.completions.create({
    model: 'm',
    messages,
    max_tokens: 100,
    stream: true,
  })
  const texts = []
  for await (const { choices } of stream) texts.push(choices[0]?.delta.content)
  expect(texts).toEqual(['Hello', undefined])
  await expect.poll(tokens).toBe(21)
})

test('a stream of the SDK of Anthropic is charged its usage', async () => {
  const message = { id: 'a', type: 'message', role: 'assistant', model: 'm', content: [] }
  const { options, tokens } = await modelOf('anthropic-stream', [
    { type: 'message_start', message: { ...message, usage: { input_tokens: 25, output_tokens: 1 } } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } },
    { type: 'message_stop' },
  ])
  const messages = [{ role: 'user' as const, content: 'Hello' }]
  const stream = new Anthropic(options).messages.stream({ model: 'm', messages, max_tokens: 100 })
  expect((await stream.finalMessage()).usage.output_tokens).toBe(15)
  await expect.poll(tokens).toBe(40)
})

test('an SDK that retries waits for its turn each time', async () => {
  const service = await serviceOf({ dialect: 'bare', limit: 1, windowMs: 500 })
  await fetch(service.url)
  const client = new OpenAI({ apiKey: 'a', baseURL: service.url, fetch: limitedFetch(fetch), maxRetries: 3 })
  await client.models.list()
  // The other requests waited until the service had room.
  expect(service.refusedAt.length).toBe(1)
})

test('axios: no request is refused, and errors are those of axios', async () => {
  const service = await serviceOf({ dialect: 'ietf', limit: 20, windowMs: 1000 })
  const api = axios.create({ adapter: 'fetch', env: { fetch: limitedFetch(fetch) } })
  const responses = await times(30, () => api.post(service.url, { a: 1 }))
  expect(responses.map(({ status }) => status)).toEqual(Array(30).fill(200))
  expect(service.refusedAt).toEqual([])
})

test('got: no request is refused, and each attempt has a turn of its own', async () => {
  const service = await serviceOf({ dialect: 'ietf', limit: 20, windowMs: 1000 })
  const turns = createTurns({ limits: [perSecond(100)] })
  const turnOf = (context: object) => (context as { turn?: OutboundTurn }).turn
  const api = got.extend({
    hooks: {
      beforeRequest: [
        async ({ url, method, context, signal }) => {
          turnOf(context)?.failed()
          context.turn = await turns.take({ url: new URL(url as URL), method }, signal)
        },
      ],
      afterResponse: [
        async (response) => {
          await turnOf(response.request.options.context)?.answered({
            status: response.statusCode,
            headers: response.headers,
          })
          return response
        },
      ],
      beforeError: [
        (error) => {
          turnOf(error.options.context)?.failed()
          return error
        },
      ],
    },
  })
  const responses = await times(30, async () => api(service.url))
  expect(responses.map(({ statusCode }) => statusCode)).toEqual(Array(30).fill(200))
  expect(service.refusedAt).toEqual([])
})

test('a turn that is taken and fails frees its place, and counts once', async () => {
  const turns = createTurns()
  const url = new URL('http://service.test/')
  const first = await turns.take({ url })
  first.failed()
  first.failed()
  const second = await turns.take({ url })
  await second.answered({ status: 200, headers: { RateLimit: '"a";r=1;t=60', 'RateLimit-Policy': '"a";q=5;w=60' } })
  await second.answered({ status: 429, headers: { 'Retry-After': '60' } })
  const third = await turns.take({ url })
  third.failed()
  await expect(turns.take({ url }, AbortSignal.timeout(50))).rejects.toThrow('timeout')
})

test('a server that limits by Sluice refuses nothing that is called by Sluice', async () => {
  const app = express()
  app.use(rateLimit({ limit: 10, window: '1s' }), (_request, response) => void response.send('ok'))
  const server = app.listen(0, '127.0.0.1')
  open.push(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  const api = limitedFetch(fetch)
  const responses = await times(35, () => api(`http://127.0.0.1:${port}/`))
  expect(responses.map(({ status }) => status)).toEqual(Array(35).fill(200))
})
