import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fixedWindow, type Units } from '@sluice/core'
import { startCounting } from '@sluice/core/metrics'
import { limitedFetch, type OutboundOptions } from '@sluice/fetch'
import { limited } from '@sluice/fetch/undici'
import fc from 'fast-check'
import { Agent, request } from 'undici'
import { afterAll, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { byEffort } from '../support/effort.js'
import { warningsDuring } from '../support/process-events.js'

const LIMIT = 1_000_000
const limits = ['tokens', 'input-tokens', 'output-tokens'].map((unit) =>
  fixedWindow({ name: unit, unit, limit: LIMIT, window: '1h' }),
)
/** 400 bytes, and 50 tokens of a response: an estimate of 150. */
const BODY = '{"max_tokens": 50, "prompt": "'.padEnd(398, 'a').concat('"}')
const ESTIMATE = { tokens: 150, 'input-tokens': 100, 'output-tokens': 50 }

const open = closedAfterEach()

async function serverOf(respond: (response: ServerResponse) => void): Promise<string> {
  const server = createServer((message, response) => {
    message.resume().once('end', () => respond(response))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1?query`
}

const counting = startCounting()
afterAll(() => counting.stop())
let policies = 0

/** Options of a client, and what its requests have been charged so far. */
function budget(more: Partial<OutboundOptions> = {}) {
  // Counts of more than 100 policies are those of one.
  const options = { name: `model-${policies++ % 50}`, limits, ...more }
  const charges = () => {
    const ofPolicy = counting.read().units.filter(({ policy }) => policy === options.name)
    const charged = ofPolicy.map(({ unit, charged, refunded }) => [unit, charged - refunded] as const)
    return new Map(charged.filter(([unit]) => options.limits.some((limit) => limit.unit === unit)))
  }
  const before = charges()
  return {
    options,
    used: (): Units => Object.fromEntries([...charges()].map(([unit, now]) => [unit, now - (before.get(unit) ?? 0)])),
  }
}

const json = (body: object) => (response: ServerResponse) =>
  void response.writeHead(200, { 'content-type': 'application/json; charset=utf-8' }).end(JSON.stringify(body))

/** Server-sent events, in chunks that end anywhere. */
const events = (list: readonly (object | string)[], end = '\n') =>
  async function respond(response: ServerResponse) {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const lines = list.map((data) => `event: any${end}data: ${typeof data === 'string' ? data : JSON.stringify(data)}`)
    const text = lines.map((event) => event + end + end).join('')
    for (let i = 0; i < text.length; i += 50) {
      response.write(text.slice(i, i + 50))
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  }

const FORMS: Record<string, { respond: (response: ServerResponse) => void; used: readonly [number, number] }> = {
  'chat completions of OpenAI': {
    respond: json({ choices: [], usage: { prompt_tokens: 19, completion_tokens: 10, total_tokens: 29 } }),
    used: [19, 10],
  },
  'streamed chat completions of OpenAI': {
    respond: events([
      { choices: [{ delta: { content: 'é"usage":{"prompt_tokens":1}' } }], usage: null },
      { choices: [], usage: { prompt_tokens: 19, completion_tokens: 310 } },
      '[DONE]',
    ]),
    used: [19, 310],
  },
  'responses of OpenAI': { respond: json({ usage: { input_tokens: 36, output_tokens: 87 } }), used: [36, 87] },
  'streamed responses of OpenAI': {
    respond: events(
      [
        { type: 'response.created', response: { usage: null } },
        { type: 'response.completed', response: { usage: { input_tokens: 37, output_tokens: 11 } } },
      ],
      '\r\n',
    ),
    used: [37, 11],
  },
  'embeddings of OpenAI': { respond: json({ usage: { prompt_tokens: 8, total_tokens: 8 } }), used: [8, 0] },
  'messages of Anthropic, without what a cache had': {
    respond: json({
      usage: {
        input_tokens: 20,
        cache_creation_input_tokens: 5,
        cache_read_input_tokens: 1000,
        output_tokens: 503,
      },
    }),
    used: [25, 503],
  },
  'streamed messages of Anthropic': {
    respond: events([
      { type: 'message_start', message: { usage: { input_tokens: 25, output_tokens: 1 } } },
      { type: 'content_block_delta', delta: { type: 'text_delta', text: 'Hello' } },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 15 } },
      { type: 'message_stop' },
    ]),
    used: [25, 15],
  },
}

const CLIENTS = {
  async limitedFetch(url: string, options: OutboundOptions) {
    await (await limitedFetch(fetch, options)(url, { method: 'POST', body: BODY })).text()
  },
  async limited(url: string, options: OutboundOptions) {
    const dispatcher = new Agent().compose(limited(options))
    await (await request(url, { method: 'POST', body: BODY, dispatcher })).body.text()
    await dispatcher.close()
  },
}

for (const [client, call] of Object.entries(CLIENTS)) {
  test.each(Object.entries(FORMS))(`${client}: the usage of %s replaces the estimate`, async (_, form) => {
    const { options, used } = budget()
    await call(await serverOf(form.respond), options)
    const [input, output] = form.used
    const expected = { tokens: input + output, 'input-tokens': input, 'output-tokens': output }
    await expect.poll(used).toEqual(expected)
  })
}

test('a request is charged its estimate before it is sent, also that of a Request and of bytes', async () => {
  const { options, used } = budget()
  const seen: Units[] = []
  const api = limitedFetch(async () => {
    seen.push(used())
    return new Response('text')
  }, options)
  const url = 'http://model.test/'
  await api(url, { method: 'POST', body: BODY })
  await api(new Request(url, { method: 'POST', body: BODY }))
  await api(url, { method: 'POST', body: new TextEncoder().encode(BODY) })
  // Of a body that is no JSON, nothing is known.
  await api(url, { method: 'POST', body: new Blob([BODY]).stream(), duplex: 'half' })
  await api(url)
  expect(seen.map(({ tokens }) => tokens)).toEqual([150, 300, 450, 450, 450])
})

test.each([
  ['has no usage', json({ choices: [] }), ESTIMATE],
  ['is no JSON', (response: ServerResponse) => void response.end('{"usage":{"input_tokens":1}}'), ESTIMATE],
  ['is not whole JSON', (response: ServerResponse) => void response.end('{"usage":{"input'), ESTIMATE],
  [
    'is a refusal',
    (response: ServerResponse) => void response.writeHead(400, { 'content-type': 'application/json' }).end('{}'),
    { tokens: 0, 'input-tokens': 0, 'output-tokens': 0 },
  ],
  ['is longer than is read', json({ a: 'a'.repeat(2 ** 20), usage: { input_tokens: 1 } }), ESTIMATE],
])('a response that %s leaves a charge that is safe', async (_, respond, expected) => {
  const { options, used } = budget()
  await CLIENTS.limitedFetch(await serverOf(respond), options)
  await expect.poll(used).toEqual(expected)
})

/** A stream that tells of 2,000 tokens of the request, and goes on. */
const endless = (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const usage = { input_tokens: 2000, output_tokens: 1 }
  response.write(`data: ${JSON.stringify({ message: { usage } })}\n\ndata: {`)
}
/** The response may have had more tokens than it told. */
const BROKEN_OFF = { tokens: 2001, 'input-tokens': 2000, 'output-tokens': 50 }

test('a stream that breaks off is charged its estimate, or more where it told more', async () => {
  const { options, used } = budget()
  const url = await serverOf((response) => {
    endless(response)
    setImmediate(() => response.socket?.destroy())
  })
  await expect(CLIENTS.limitedFetch(url, options)).rejects.toThrow('terminated')
  await expect.poll(used).toEqual(BROKEN_OFF)
})

test('so is one that is aborted, and one whose reader cancels it', async () => {
  const url = await serverOf(endless)
  for (const isAborted of [true, false]) {
    const { options, used } = budget()
    const abort = new AbortController()
    const response = await limitedFetch(fetch, options)(url, { method: 'POST', body: BODY, signal: abort.signal })
    const reader = (response.body as ReadableStream).getReader()
    await reader.read()
    if (isAborted) abort.abort()
    const ended = isAborted ? reader.read().catch(({ name }) => name) : reader.cancel()
    expect(await ended).toBe(isAborted ? 'AbortError' : undefined)
    await expect.poll(used).toEqual(BROKEN_OFF)
  }
})

test('so is one that undici aborts', async () => {
  const { options, used } = budget()
  const dispatcher = new Agent().compose(limited(options))
  const { body } = await request(await serverOf(endless), { method: 'POST', body: BODY, dispatcher })
  body.once('data', () => body.destroy()).on('error', () => {})
  await expect.poll(used).toEqual(BROKEN_OFF)
  await dispatcher.destroy()
})

test('a metered response is the one of fetch: its URL, status, headers, clones and readers of bytes', async () => {
  const url = await serverOf((response) => {
    response.writeHead(201, 'Made', { 'content-type': 'application/json', 'set-cookie': ['a=1', 'b=2'] }).end('{"a":1}')
  })
  const api = limitedFetch(fetch, budget().options)
  const [given, plain] = [await api(url), await fetch(url)]
  for (const response of [given.clone(), given]) {
    const { status, statusText, ok, type, redirected } = response
    const expected = { status: 201, statusText: 'Made', ok: true, type: plain.type, redirected: false, url }
    expect({ status, statusText, ok, type, redirected, url: response.url }).toEqual(expected)
    expect(response).toBeInstanceOf(Response)
    expect(response.headers.getSetCookie()).toEqual(['a=1', 'b=2'])
  }
  const reader = (given.clone().body as ReadableStream).getReader({ mode: 'byob' })
  const { value } = await reader.read(new Uint8Array(3))
  expect(new TextDecoder().decode(value)).toBe('{"a')
  expect(await given.json()).toEqual({ a: 1 })
  const empty = await serverOf((response) => void response.writeHead(204, { 'content-type': 'application/json' }).end())
  expect((await api(empty)).body).toBe(null)
})

test('a response is read no faster than its reader reads', async () => {
  let pulls = 0
  const source = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        pulls++
        controller.enqueue(new TextEncoder().encode('data: {}\n\n'))
      },
    },
    { highWaterMark: 0 },
  )
  const headers = { 'content-type': 'text/event-stream' }
  const api = limitedFetch(async () => new Response(source, { headers }), budget().options)
  const reader = ((await api('http://model.test/')).body as ReadableStream).getReader()
  for (let read = 0; read < 3; read++) await reader.read()
  await new Promise((resolve) => setTimeout(resolve, 20))
  expect(pulls).toBe(3)
})

test('a budget that an estimate uses up admits the next request once the usage is known', async () => {
  const bucket = [fixedWindow({ unit: 'tokens', limit: 220, window: '1h' })]
  const respond = json({ usage: { prompt_tokens: 20, completion_tokens: 10 } })
  const api = limitedFetch(fetch, { limits: bucket, maxWait: Number.POSITIVE_INFINITY })
  const url = await serverOf(respond)
  const call = async () => (await api(url, { method: 'POST', body: BODY })).text()
  expect((await Promise.all([call(), call(), call()])).length).toBe(3)
})

test('a wait for tokens says so, also one that is never admitted', async () => {
  const told: string[] = []
  const few = [fixedWindow({ name: 'budget', unit: 'tokens', limit: 160, window: '1h' })]
  const onWait = ({ reason }: { reason: string }) => told.push(reason)
  const abort = new AbortController()
  const api = limitedFetch(async () => new Response(), { limits: few, maxWait: Number.POSITIVE_INFINITY, onWait })
  const call = (body: string) => api('http://model.test/', { method: 'POST', body, signal: abort.signal })
  await call(BODY)
  const waits = call(BODY).catch(({ name }) => name)
  await expect.poll(() => told).toEqual(['the limit budget'])
  abort.abort()
  expect(await waits).toBe('AbortError')
  const once = limitedFetch(async () => new Response(), { limits: few, maxWait: '5s' })
  await once('http://model.test/', { method: 'POST', body: BODY })
  await expect(once('http://model.test/', { method: 'POST', body: BODY })).rejects.toThrow(/for the limit budget, at/)
  const large = { method: 'POST', body: BODY.replace('50', '5000') }
  await expect(once('http://model.test/', large)).rejects.toThrow('for more units than a limit ever admits at once')
})

test('cost and usage are of any units, and a weight counts as many requests', async () => {
  const own = [fixedWindow({ limit: 8, window: '1h' }), fixedWindow({ unit: 'cents', limit: LIMIT, window: '1h' })]
  const { options, used } = budget({
    limits: own,
    cost: ({ method }) => (method === 'POST' ? { requests: 5, cents: 30 } : 2),
    usage: (document) => ({ cents: (document as { price: number }).price }),
    maxWait: '1s',
  })
  const api = limitedFetch(fetch, options)
  const url = await serverOf(json({ price: 4 }))
  await (await api(url)).text()
  await (await api(url, { method: 'POST', body: '{}' })).text()
  await expect.poll(used).toEqual({ cents: 8 })
  await expect(api(url)).rejects.toThrow('longer than maxWait')
})

test.each([
  [{ cost: { token: 5 } }, 'cost: expected units that its limits count, tokens or input-tokens or output-tokens'],
  [{ cost: { tokens: -1 } }, 'cost: tokens'],
  [{ cost: 2 }, 'cost'],
  [{ usage: 'tokens' }, 'usage: expected a function'],
])('costs that are wrong are rejected: %o', (options, message) => {
  expect(() => limitedFetch(fetch, { name: 'model', limits, ...(options as object) })).toThrow(message)
})

test('a function for the usage that fails is told once, and its response reaches its caller', async () => {
  const { options, used } = budget({
    usage: (document) => ({ tokens: (document as { a: { b: number } }).a.b }),
  })
  const api = limitedFetch(async () => Response.json({}), options)
  const warnings = await warningsDuring(async () => {
    for (let i = 0; i < 2; i++) {
      const response = await api('http://model.test/', { method: 'POST', body: BODY })
      expect(await response.json()).toEqual({})
    }
  })
  expect(used()).toMatchObject({ tokens: 300 })
  expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining('usage: Cannot read properties')])
})

const hostile = fc.oneof(
  fc.integer(),
  fc.double(),
  fc.constantFrom(1e300, -1, '5', null, [], {}, true, 2 ** 53, 1_000_000_001),
  fc.string(),
)
const field = fc.constantFrom('prompt_tokens', 'completion_tokens', 'input_tokens', 'output_tokens', '__proto__')
const usage = fc.array(fc.tuple(field, hostile), { maxLength: 4 }).map((fields) => Object.fromEntries(fields))
const document = fc.oneof(
  fc.record({ usage: fc.oneof(usage, hostile) }),
  fc.record({ response: fc.oneof(fc.record({ usage }), hostile) }),
  fc.record({ message: fc.oneof(fc.record({ usage }), hostile) }),
  fc.json().map((text) => JSON.parse(text)),
)

test('whatever a response tells, and in whatever chunks, its bytes are untouched and the charge is bounded', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.oneof(
          document.map((data) => JSON.stringify(data)),
          fc.string(),
        ),
        { maxLength: 6 },
      ),
      fc.constantFrom('\n', '\r\n', '\r'),
      fc.boolean(),
      fc.array(fc.integer({ min: 0, max: 40 }), { minLength: 1, maxLength: 5 }),
      async (documents, end, isStream, sizes) => {
        const text = isStream ? documents.map((data) => `data: ${data}${end}${end}`).join('') : documents.join('')
        const bytes = new TextEncoder().encode(text)
        const chunks: Uint8Array[] = []
        for (let at = 0, i = 0; at < bytes.length; i++) {
          const size = Math.max(i % 7, sizes[i % sizes.length] as number)
          chunks.push(bytes.slice(at, at + size))
          at += size
        }
        const { options, used } = budget()
        const headers = { 'content-type': isStream ? 'text/event-stream' : 'application/json' }
        const streamed = () => ReadableStream.from(chunks) as unknown as ReadableStream
        const api = limitedFetch(async () => new Response(streamed(), { headers }), options)
        const response = await api('http://model.test/', { method: 'POST', body: BODY })
        expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes)
        await new Promise((resolve) => setImmediate(resolve))
        for (const units of Object.values(used()))
          expect(Number.isSafeInteger(units) && units >= 0 && units <= 3e9).toBe(true)
      },
    ),
    { numRuns: byEffort({ usual: 200, full: 5000 }) },
  )
})
