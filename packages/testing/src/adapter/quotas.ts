import assert from 'node:assert/strict'
import { everyone, leakyBucket, perMinute, perSecond, reject } from '@sluice/core'
import type { RegisterTest } from './adapter-test.js'
import { limiterOf } from './app.js'
import { type Response, send, statuses } from './client.js'

/** Fields that show a client its limits. */
const quotaFields = ({ headers }: Response) => Object.keys(headers).filter((field) => /ratelimit|retry/.test(field))

export function quotaTests(on: RegisterTest): void {
  for (const register of [admissionTests, formTests, answerTests, severalLimitTests, costTests, waitTests]) register(on)
}

function admissionTests(on: RegisterTest): void {
  on('an admitted client is sent its quota, and the handler finds the verdict', async ({ start, store }) => {
    const app = await start({ routes: { '/': { limiters: [{ name: 'api', store, limit: 5, window: '10s' }] } } })
    const response = await send(app.url)
    assert.equal(response.status, 200)
    assert.equal(response.text, 'done')
    assert.equal(response.headers['ratelimit-policy'], '"api";q=5;w=10')
    assert.equal(response.headers.ratelimit, '"api";r=4;t=10')
    assert.equal(response.headers['retry-after'], undefined)
    const [{ allowed, remaining }] = app.verdicts as [{ allowed: boolean; remaining: number }]
    assert.deepEqual([app.verdicts.length, allowed, remaining], [1, true, 4])
  })

  on('a refusal is 429 with Retry-After and problem details; the handler does not run', async (test) => {
    const { start, store, clock } = test
    const app = await start({ routes: { '/': { limiters: [{ name: 'api', store, limit: 1, window: '10s' }] } } })
    await send(app.url)
    clock.advance(2500)
    const { status, headers, text } = await send(app.url)
    assert.equal(status, 429)
    assert.equal(headers['ratelimit-policy'], '"api";q=1;w=10')
    assert.equal(headers.ratelimit, '"api";r=0;t=8')
    assert.equal(headers['retry-after'], '8')
    assert.equal(headers['cache-control'], 'no-store')
    assert.equal(headers['content-type'], 'application/problem+json; charset=utf-8')
    assert.equal(headers['content-length'], String(text.length))
    assert.equal(
      text,
      '{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"violated-policies":["api"]}',
    )
    assert.deepEqual(app.ran, ['/'])
  })

  on(
    'a client that waits as long as Retry-After says is admitted, and none before',
    async ({ start, store, clock }) => {
      clock.advance(400)
      const app = await start({ routes: { '/': { limiters: [{ store, limit: 2, window: '7s' }] } } })
      assert.deepEqual(await statuses(app.url, 2), [200, 200])
      clock.advance(300)
      const waitS = Number((await send(app.url)).headers['retry-after'])
      clock.advance((waitS - 1) * 1000)
      assert.equal((await send(app.url)).status, 429)
      clock.advance('1s')
      assert.equal((await send(app.url)).status, 200)
    },
  )
}

function formTests(on: RegisterTest): void {
  on('a client that accepts no JSON gets a line of text', async ({ start, store }) => {
    const app = await start({ routes: { '/': { limiters: [{ store, limit: 0, window: '10s' }] } } })
    const { status, headers, text } = await send(app.url, { headers: { Accept: 'text/plain' } })
    assert.deepEqual([status, headers['content-type']], [429, 'text/plain; charset=utf-8'])
    assert.match(text, /^Too many requests: .*\n$/)
  })

  on('HEAD has the headers of GET and no body, and its budget', async ({ start, store }) => {
    const app = await start({ routes: { '/': { limiters: [{ name: 'api', store, limit: 2, window: '10s' }] } } })
    assert.deepEqual(await statuses(app.url, 1), [200])
    const head = await send(app.url, { method: 'HEAD' })
    assert.deepEqual([head.status, head.headers.ratelimit], [200, '"api";r=0;t=10'])
    const refused = await send(app.url, { method: 'HEAD' })
    assert.deepEqual([refused.status, refused.text, refused.headers['retry-after']], [429, '', '10'])
    assert.ok(Number(refused.headers['content-length']) > 100)
  })

  on('a global limit counts unknown paths too', async ({ start, store }) => {
    const app = await start({ global: [{ store, limit: 2, window: '10s' }], routes: { '/': {} } })
    assert.deepEqual(await statuses(app.url, 1), [200])
    assert.deepEqual(await statuses(`${app.url}/nowhere`, 2), [404, 429])
  })
}

function answerTests(on: RegisterTest): void {
  on('reject can say 503, with a text, an object or a function of the request', async ({ start, store }) => {
    const once = (name: string, respond: ReturnType<typeof reject>) => ({
      limiters: [{ name, store, limit: 1, window: '10s' as const, respond, headers: false as const }],
    })
    const app = await start({
      routes: {
        '/problem': once('a', reject({ status: 503 })),
        '/text': once('b', reject({ body: 'slow down' })),
        '/object': once('c', reject({ body: { slow: 'down' } })),
        '/function': once('d', reject({ body: async (_request, { reason }) => ({ reason }) })),
      },
    })
    const answer = async (path: string) => {
      assert.deepEqual(await statuses(app.url + path, 1), [200])
      const { status, headers, text } = await send(app.url + path)
      assert.equal(headers['cache-control'], 'no-store')
      return [status, headers['content-type'], text]
    }
    assert.deepEqual(await answer('/problem'), [
      503,
      'application/problem+json; charset=utf-8',
      '{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Request cannot be satisfied due to temporary server capacity constraints","status":503,"violated-policies":["a"]}',
    ])
    assert.deepEqual(await answer('/text'), [429, 'text/plain; charset=utf-8', 'slow down'])
    assert.deepEqual(await answer('/object'), [429, 'application/json; charset=utf-8', '{"slow":"down"}'])
    assert.deepEqual(await answer('/function'), [429, 'application/json; charset=utf-8', '{"reason":"limited"}'])
  })
}

function severalLimitTests(on: RegisterTest): void {
  on('several limiters on one route are all in the headers, and none overwrites another', async ({ start, store }) => {
    const app = await start({
      global: [{ name: 'all', store, limit: 100, window: '1h' }],
      routes: {
        '/': {
          limiters: [
            { name: 'route', store, limit: 3, window: '10s' },
            { name: 'tight', store, limit: 1, window: '5s' },
          ],
        },
      },
    })
    const first = await send(app.url)
    assert.equal(first.headers['ratelimit-policy'], '"all";q=100;w=3600, "route";q=3;w=10, "tight";q=1;w=5')
    assert.equal(first.headers.ratelimit, '"all";r=99;t=3600, "route";r=2;t=10, "tight";r=0;t=5')
    const second = await send(app.url)
    assert.equal(second.status, 429)
    assert.equal(second.headers.ratelimit, '"all";r=98;t=3600, "route";r=1;t=10, "tight";r=0;t=5')
    assert.equal(second.headers['retry-after'], '5')
    assert.deepEqual(JSON.parse(second.text)['violated-policies'], ['tight'])
  })

  on('an existing Retry-After is raised, never lowered', async ({ start, store }) => {
    const limiters = [{ store, limit: 1, window: '10s' as const }]
    const long = await start({ presetHeaders: { 'Retry-After': '60' }, routes: { '/': { limiters } } })
    assert.deepEqual(await statuses(long.url, 1), [200])
    assert.equal((await send(long.url)).headers['retry-after'], '60')
    const short = await start({ presetHeaders: { 'Retry-After': '3' }, routes: { '/': { limiters } } })
    assert.equal((await send(short.url)).headers['retry-after'], '10')
  })

  on('several limits of one limiter are charged all or none', async ({ start, store, clock }) => {
    const app = await start({
      routes: { '/': { limiters: [{ name: 'api', store, limits: [perSecond(1), perMinute(3)] }] } },
    })
    assert.deepEqual(await statuses(app.url, 3), [200, 429, 429])
    clock.advance('1s')
    const { headers } = await send(app.url)
    assert.equal(headers['ratelimit-policy'], '"api-1s";q=1;w=1, "api-1m";q=3;w=60')
    assert.equal(headers.ratelimit, '"api-1s";r=0;t=1, "api-1m";r=1;t=60')
  })
}

function costTests(on: RegisterTest): void {
  on('a cost above the capacity of a limit is refused without a Retry-After', async ({ start, store }) => {
    const app = await start({
      routes: { '/': { limiters: [{ name: 'api', store, limit: 5, window: '10s', cost: 6 }] } },
    })
    const { status, headers, text } = await send(app.url)
    assert.deepEqual([status, headers['retry-after'], headers.ratelimit], [429, undefined, '"api";r=5;t=0'])
    const problem = JSON.parse(text)
    assert.deepEqual([problem.status, problem['violated-policies']], [429, ['api']])
    assert.match(problem.detail, /costs more/)
  })

  on('a cost of the request charges that many units', async ({ start, store }) => {
    const app = await start({
      routes: { '/': { limiters: [{ name: 'api', store, limit: 5, window: '10s', cost: async () => 3 }] } },
    })
    const quota = async () => {
      const { status, headers } = await send(app.url)
      return [status, headers.ratelimit, headers['retry-after']]
    }
    assert.deepEqual(await quota(), [200, '"api";r=2;t=10', undefined])
    assert.deepEqual(await quota(), [429, '"api";r=2;t=10', '10'])
  })

  on('skip charges nothing and sends no quota, also when it resolves later', async ({ start, store }) => {
    const skip = (_request: unknown, context: { header(name: string): string | undefined }) =>
      context.header('x-internal') === 'yes'
    const app = await start({
      routes: {
        '/now': { limiters: [{ name: 'now', store, limit: 1, window: '10s', skip }] },
        '/late': { limiters: [{ name: 'late', store, limit: 1, window: '10s', skip: async (r, c) => skip(r, c) }] },
      },
    })
    for (const path of ['/now', '/late']) {
      for (let n = 0; n < 3; n++) {
        const response = await send(app.url + path, { headers: { 'X-Internal': 'yes' } })
        assert.deepEqual([response.status, quotaFields(response)], [200, []])
      }
      assert.deepEqual(await statuses(app.url + path, 2), [200, 429])
    }
  })
}

function waitTests(on: RegisterTest): void {
  on('a blocked client is sent when the block ends, and no quota', async ({ start, store, clock }) => {
    const app = await start({
      routes: { '/': { limiters: [{ name: 'api', store, limit: 9, window: '10s', key: everyone() }] } },
    })
    const limiter = limiterOf(app)
    await limiter.block('everyone', { for: 90_000, reason: 'scraping' })
    const response = await send(app.url)
    assert.deepEqual([response.status, response.headers['retry-after']], [429, '90'])
    assert.deepEqual(quotaFields(response), ['retry-after'])
    assert.deepEqual(JSON.parse(response.text), {
      type: 'https://iana.org/assignments/http-problem-types#abnormal-usage-detected',
      title: 'Request cannot be satisfied due to abnormal usage',
      status: 429,
    })
    clock.advance(89_999)
    assert.deepEqual(await statuses(app.url, 1), [429])
    clock.advance(1)
    assert.deepEqual(await statuses(app.url, 1), [200])
    await limiter.block('everyone', { for: 90_000, reason: '' })
    await limiter.unblock('everyone')
    assert.deepEqual(await statuses(app.url, 1), [200])
  })

  on('a limit that queues spaces requests out', async ({ start, store }) => {
    const limits = [leakyBucket({ leak: 10, every: '1s', capacity: 3, queue: true })]
    const app = await start({ routes: { '/': { limiters: [{ name: 'queue', store, limits }] } } })
    const startedAt = performance.now()
    const responses = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const { status } = await send(app.url)
        return { status, after: performance.now() - startedAt }
      }),
    )
    const admitted = responses.filter(({ status }) => status === 200).map(({ after }) => after)
    assert.equal(admitted.length, 3)
    admitted.sort((a, b) => a - b)
    // Timers may fire a little early by the performance clock.
    for (const [i, after] of admitted.entries())
      assert.ok(after >= i * 100 - 5, `the ${i + 1}th came after ${after} ms`)
  })
}
