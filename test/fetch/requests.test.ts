import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fixedWindow, tokenBucket } from '@sluice/core'
import { limitedFetch } from '@sluice/fetch'
import * as undici from 'undici'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { failuresDuring } from '../support/process-events.js'

const open = closedAfterEach()

/** A server that tells what it was sent. */
async function echo() {
  const received: string[] = []
  const server = createServer(async (request, response) => {
    received.push(`${request.method} ${request.url} ${request.headers['x-account'] ?? '-'} ${await text(request)}`)
    response.end('ok')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }
}

const init = { method: 'PUT', headers: { 'x-account': 'ann' }, body: 'text' }
/** Undici closes connections of its own. */
const ofUndici = {
  fetch: undici.fetch as unknown as typeof fetch,
  Request: undici.Request as unknown as typeof Request,
}
const ofNode = { fetch: globalThis.fetch, Request: globalThis.Request }

/** Arguments of fetch, by what makes them. */
const CALLS: Record<string, (url: string, Request: typeof globalThis.Request) => Parameters<typeof fetch>> = {
  'a URL and options': (url) => [new URL(url), init],
  'a Request': (url, Request) => [new Request(url, init)],
  'a Request and options': (url, Request) => [
    new Request(url, init),
    { method: 'PATCH', headers: { 'x-account': 'bob' } },
  ],
  'a Request as options': (url, Request) => [url, new Request('http://other.test/', init)],
  'two Requests': (url, Request) => [new Request(url), new Request('http://other.test/', init)],
  'options that inherit': (url) => [url, Object.create(init)],
}

describe.each(Object.entries({ 'of Node': ofNode, 'of undici': ofUndici }))('%s', (_, { fetch, Request }) => {
  test.each(Object.entries(CALLS))('%s sends the same as without limits, and its key sees that', async (__, make) => {
    const { received, url } = await echo()
    const keys: string[] = []
    const api = limitedFetch(fetch, {
      signal: new AbortController().signal,
      key({ url: of, method, headers }) {
        keys.push(`${method} ${of.pathname} ${headers.get('x-account')}`)
        return 'all'
      },
    })
    const target = `${url}/path`
    expect((await fetch(...make(target, Request))).status).toBe(200)
    expect((await api(...make(target, Request))).status).toBe(200)
    const [plain, limited] = received
    expect(limited).toBe(plain)
    expect(limited).toMatch(`${keys[0]} text`)
  })
})

test('a signal of null replaces that of a Request', async () => {
  const { url } = await echo()
  const api = limitedFetch(fetch)
  const request = () => new Request(url, { signal: AbortSignal.abort() })
  expect((await api(request(), { signal: null })).status).toBe(200)
  expect((await api(request(), { signal: new AbortController().signal })).status).toBe(200)
  await expect(api(request(), {})).rejects.toThrow('aborted')
  await expect(api(request(), { signal: undefined as unknown as null })).rejects.toThrow('aborted')
})

test('a Request whose body is a stream is sent before that ends, and no more of it is read', async () => {
  const limits = [tokenBucket({ unit: 'tokens', refill: 1000, every: '1m' })]
  let [hasEnded, chunks] = [false, 0]
  const respond: { now?: () => void } = {}
  const server = createServer((request, response) => {
    respond.now = () => void response.end('ok')
    request.resume().once('end', () => respond.now?.())
    arrived()
  })
  let arrived = () => {}
  const hasArrived = new Promise<void>((resolve) => {
    arrived = resolve
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const body = new ReadableStream({
    async pull(controller) {
      controller.enqueue(new TextEncoder().encode('{'))
      if (++chunks < 2) return
      await hasArrived
      hasEnded = true
      controller.close()
    },
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const api = limitedFetch(fetch, { limits })
  const response = api(new Request(url, { method: 'POST', body, duplex: 'half' } as RequestInit))
  await hasArrived
  expect(hasEnded).toBe(false)
  expect((await response).status).toBe(200)

  let pulled = 0
  const endless = new ReadableStream({
    pull(controller) {
      pulled++
      controller.enqueue(new Uint8Array(1024))
    },
  })
  let pulledBefore = Number.POSITIVE_INFINITY
  const counted = limitedFetch(
    async () => {
      pulledBefore = pulled
      return new Response()
    },
    { limits },
  )
  await counted(new Request(url, { method: 'POST', body: endless, duplex: 'half' } as RequestInit))
  expect(pulledBefore).toBeLessThan(10)
})

describe('a stream whose request waits', () => {
  const held = () => {
    const limits = [fixedWindow({ limit: 1, window: '1h' }), tokenBucket({ unit: 'tokens', refill: 1000, every: '1m' })]
    return limitedFetch(async () => new Response(), { limits, maxWait: Number.POSITIVE_INFINITY })
  }
  const url = 'http://service.test/'
  const streaming = (onCancel: () => void) =>
    new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(1)),
      cancel: onCancel,
    })
  const ofNode = (onCancel: () => void) => new PassThrough().once('close', onCancel)
  const init = (body: unknown, signal?: AbortSignal) =>
    ({ method: 'POST', body, duplex: 'half', signal }) as RequestInit

  test.each<[string, (onCancel: () => void, signal: AbortSignal) => Parameters<typeof fetch>]>([
    ['of options', (onCancel, signal) => [url, init(streaming(onCancel), signal)]],
    ['of a Request', (onCancel, signal) => [new Request(url, init(streaming(onCancel), signal))]],
    ['of Node', (onCancel, signal) => [url, init(ofNode(onCancel), signal)]],
  ])('is cancelled with it (%s)', async (_, make) => {
    const api = held()
    await api(url)
    const abort = new AbortController()
    let isCancelled = false
    const onCancel = () => {
      isCancelled = true
    }
    const waits = api(...make(onCancel, abort.signal)).catch(({ name }) => name)
    setImmediate(() => abort.abort())
    expect(await waits).toBe('AbortError')
    await expect.poll(() => isCancelled).toBe(true)
  })

  test('rejects that request if it fails, as a stream of Node may', async () => {
    const api = held()
    await api(url)
    const body = new PassThrough()
    const failures = await failuresDuring(async () => {
      const waits = api(url, init(body))
      setImmediate(() => body.destroy(new Error('of the body')))
      await expect(waits).rejects.toThrow('of the body')
    })
    expect(failures).toEqual([])
  })
})
