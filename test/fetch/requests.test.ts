import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { limitedFetch } from '@sluice/fetch'
import * as undici from 'undici'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'

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
