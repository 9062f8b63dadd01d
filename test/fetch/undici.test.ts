// Release: one of many clients, in each of its versions.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { concurrency, fixedWindow, perSecond } from '@sluice/core'
import { limited } from '@sluice/fetch/undici'
import { describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { failuresDuring } from '../support/process-events.js'
import { type ServiceOptions, startService } from './service.js'

type Undici = typeof import('undici')

const VERSIONS: Record<string, () => Promise<unknown>> = {
  'undici 6': () => import('undici6'),
  'undici 7': () => import('undici'),
  'undici 8': () => import('undici8'),
}
/** undici 8 needs Node 22.19. */
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 19)) delete VERSIONS['undici 8']

const open = closedAfterEach()

async function serviceOf(options: ServiceOptions) {
  const service = await startService(options)
  open.push(() => service.close())
  return service
}

const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make))

describe.each(Object.entries(VERSIONS))('%s', (_, load) => {
  async function agentOf(options: Parameters<typeof limited>[0]) {
    const undici = (await load()) as Undici
    const inner = new undici.Agent()
    open.push(() => inner.destroy())
    return { undici, agent: inner.compose(limited(options)) }
  }

  test.each(['request', 'fetch'] as const)('no %s is refused by a service that tells its limit', async (by) => {
    const service = await serviceOf({ dialect: 'ietf', limit: 20, windowMs: 1000 })
    const { undici, agent: dispatcher } = await agentOf({})
    const statusOf = {
      request: async () => {
        const { statusCode, body } = await undici.request(service.url, { dispatcher })
        expect(await body.text()).toBe('{}')
        return statusCode
      },
      fetch: async () => {
        const response = await undici.fetch(service.url, { dispatcher })
        expect(await response.text()).toBe('{}')
        return response.status
      },
    }
    expect(await times(50, statusOf[by])).toEqual(Array(50).fill(200))
    expect(service.refusedAt).toEqual([])
  })

  test.each(['request', 'fetch'] as const)('an aborted %s leaves its place, and is not sent', async (by) => {
    const service = await serviceOf({ dialect: 'bare', limit: 100, windowMs: 1000 })
    const { undici, agent: dispatcher } = await agentOf({ limits: [perSecond(1)] })
    await undici.request(service.url, { dispatcher })
    const abort = new AbortController()
    const options = { dispatcher, signal: abort.signal }
    const waits = by === 'fetch' ? undici.fetch(service.url, options) : undici.request(service.url, options)
    const ended = waits.then(
      () => 'sent',
      (error) => error.name,
    )
    setImmediate(() => abort.abort())
    expect(await ended).toBe('AbortError')
    await undici.request(service.url, { dispatcher })
    expect(service.arrivedAt.length).toBe(2)
  })

  test('a refusal holds the others, and is passed on; a wait that is too long says what it was for', async () => {
    const service = await serviceOf({ dialect: 'retry-after', limit: 1, windowMs: 60_000 })
    const { undici, agent: dispatcher } = await agentOf({ name: 'partner', maxWait: '5s' })
    const statuses = []
    for (let i = 0; i < 2; i++) statuses.push((await undici.request(service.url, { dispatcher })).statusCode)
    expect(statuses).toEqual([200, 429])
    await expect(undici.request(service.url, { dispatcher })).rejects.toThrow(
      /^policy "partner": fetch of http:\/\/127\.0\.0\.1:\d+: waited \d+ ms for a pause that the service asks for/,
    )
    expect(service.arrivedAt.length).toBe(2)
  })

  test('bodies are sent once, keys see headers, and a broken connection frees its place', async () => {
    const bodies: string[] = []
    const server = createServer(async (request, response) => {
      bodies.push(`${request.headers['x-account']} ${await text(request)}`)
      if (bodies.length === 2) request.socket.destroy()
      else response.writeHead(200, { 'content-type': 'text/plain' }).end('ok')
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/path?query`
    const keys: string[] = []
    const { undici, agent: dispatcher } = await agentOf({
      key({ url, method, headers }) {
        keys.push(`${method} ${url.pathname} ${headers.get('x-account')}`)
        return 'all'
      },
    })
    const post = (body: string) =>
      undici.request(url, { dispatcher, method: 'POST', headers: { 'x-account': 'ann' }, body }).then(
        (response) => response.statusCode,
        (error) => error.code,
      )
    expect([await post('one'), await post('two'), await post('three')]).toEqual([200, 'UND_ERR_SOCKET', 200])
    expect(bodies).toEqual(['ann one', 'ann two', 'ann three'])
    expect(keys).toEqual(Array(3).fill('POST /path ann'))
  })

  test('a stream that fails while its request waits rejects that one alone, which keeps no place', async () => {
    const arrived: string[] = []
    let respond = () => {}
    const server = createServer((request, response) => {
      arrived.push(String(request.url))
      respond = () => void response.end('ok')
      if (request.url !== '/slow') respond()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    open.push(() => void server.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const limits = [concurrency({ limit: 1, ttl: '1h' }), fixedWindow({ limit: 2, window: '1h' })]
    const { undici, agent: dispatcher } = await agentOf({ limits, maxWait: '30s' })
    const statusOf = async (path: string) => (await undici.request(`${url}${path}`, { dispatcher })).statusCode
    const failures = await failuresDuring(async () => {
      const slow = statusOf('/slow')
      await expect.poll(() => arrived).toEqual(['/slow'])
      const body = new PassThrough()
      const failing = undici.request(`${url}/failing`, { dispatcher, method: 'POST', body }).catch((error) => error)
      const next = statusOf('/next')
      setImmediate(() => body.destroy(new Error('of the body')))
      expect((await failing).message).toBe('of the body')
      respond()
      expect(await Promise.all([slow, next])).toEqual([200, 200])
    })
    expect(failures).toEqual([])
    expect(arrived).toEqual(['/slow', '/next'])
  })

  test.each(['Client', 'Pool', 'Agent'] as const)(
    'a %s keeps every path within the limit of its origin',
    async (kind) => {
      const paths: string[] = []
      const server = createServer((request, response) => {
        paths.push(String(request.url))
        response.end('ok')
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      open.push(() => void server.close())
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const undici = (await load()) as Undici
      const inner = kind === 'Agent' ? new undici.Agent() : new undici[kind](origin)
      open.push(() => inner.destroy())
      const seen: string[] = []
      const key = ({ url }: { url: URL }) => {
        seen.push(url.href)
        return url.origin
      }
      const dispatcher = inner.compose(
        limited({ key, limits: [fixedWindow({ limit: 5, window: '1h' })], maxWait: '1s' }),
      )
      const send = async (path: string) => {
        const { statusCode, body } = await dispatcher.request({
          path,
          method: 'GET',
          ...(kind === 'Agent' && { origin: new URL(origin) }),
        } as { path: string; method: 'GET' })
        await body.text()
        return statusCode
      }
      const given = ['/a?b=c', '//', '//evil.test/x', '/\\\\evil.test', 'http://evil.test/x']
      for (const path of given) expect(await send(path)).toBe(200)
      expect(paths).toEqual(given)
      const counted = kind === 'Agent' ? origin : 'http://undici.invalid'
      expect(seen.map((href) => href.slice(0, counted.length + 1))).toEqual(given.map(() => `${counted}/`))
      expect(seen[0]).toBe(`${counted}/a?b=c`)
      await expect(send('//evil.test/y')).rejects.toMatchObject({ code: 'WAIT_EXCEEDED' })
    },
  )

  test('a request that retries waits for its turn each time', async () => {
    const service = await serviceOf({ dialect: 'github', limit: 1, windowMs: 1000 })
    const undici = (await load()) as Undici
    const inner = new undici.Agent()
    open.push(() => inner.destroy())
    const retry = undici.interceptors.retry({ maxRetries: 3, minTimeout: 1, statusCodes: [403], errorCodes: [] })
    // Another client has used what is left.
    await fetch(service.url)
    const dispatcher = inner.compose(limited({}), retry)
    expect((await undici.request(service.url, { dispatcher })).statusCode).toBe(200)
    expect(service.refusedAt.length).toBe(1)
  })
})

test('a fetch of another version of undici gets an error that says what to do', async () => {
  const dispatch = limited()((_options: { origin: string; path: string; method: string }, _handler: object) => {
    throw new Error('invalid onRequestStart method')
  })
  const error = new Promise<Error>((resolve) => {
    dispatch({ origin: 'http://service.test', path: '/', method: 'GET' }, { onConnect() {}, onError: resolve })
  })
  expect((await error).message).toBe(
    "limited: the dispatcher is of another version of undici than the fetch that uses it: use that undici's own fetch, or limitedFetch",
  )
})

test('options are checked, and those of limitedFetch alone are unknown', () => {
  expect(() => limited({ maxWait: '-1s' as never })).toThrow(/maxWait/)
  expect(() => limited({ retry: { attempts: 1 } } as never)).toThrow(/retry/)
})
