// Runs alone: its clients keep agents and timers for the process.
import {
  fixedWindow,
  gcra,
  type HeadersOption,
  type LimitReport,
  leakyBucket,
  memoryStore,
  perMinute,
  perSecond,
  reject,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import { parseRateLimit } from 'ratelimit-header-parser'
import { type Item, parseDictionary, parseList } from 'structured-headers'
import { Agent, type Dispatcher, interceptors, RetryAgent, request } from 'undici'
import { afterEach, describe, expect, test } from 'vitest'
import { type AnyOptions, type AppSpec, type RunningApp, run } from './support/app.js'
import { FRAMEWORKS } from './support/frameworks.js'

const running: RunningApp[] = []
const start = async (framework: string, spec: AppSpec) => {
  const app = await run(FRAMEWORKS[framework] as (typeof FRAMEWORKS)[string], spec)
  running.push(app)
  return app
}
afterEach(async () => {
  for (const app of running.splice(0)) await app.close()
})

/** Policies that admit a few requests and then refuse for a second or two, one per algorithm. */
const POLICIES: Record<string, AnyOptions[]> = {
  '/log': [{ limits: [perSecond(2)] }],
  '/together': [{ limits: [perSecond(2), perMinute(50)] }],
  '/window': [{ limits: [fixedWindow({ limit: 2, window: '2s', anchor: 'first-request' })] }],
  '/clock': [{ limits: [fixedWindow({ limit: 2, window: '2s', anchor: 'clock' })] }],
  '/sliding': [{ limits: [slidingWindow({ limit: 2, window: '1s', segments: 10 })] }],
  '/gcra': [{ limits: [gcra({ limit: 1, window: '1s' })] }],
  '/tokens': [{ limits: [tokenBucket({ capacity: 3, refill: 1, every: '1500ms' })] }],
  '/leaky': [{ limits: [leakyBucket({ capacity: 2, leak: 1, every: '1s' })] }],
  '/costly': [{ limit: 5, window: '1s', cost: 3 }],
  '/several': [
    { name: 'outer', limits: [perSecond(9)] },
    { name: 'inner', limit: 1, window: '2s' },
  ],
}

/** The statuses of the server's responses to the patient client, in order, by path. */
function record(app: RunningApp): Record<string, number[]> {
  const sent: Record<string, number[]> = {}
  app.server.on('request', ({ url = '', headers }, res) => {
    if (!headers['x-patient']) return
    sent[url] ??= []
    res.on('finish', () => sent[url]?.push(res.statusCode))
  })
  return sent
}

const CLIENTS: Record<string, () => Dispatcher> = {
  "undici's RetryAgent": () => new RetryAgent(new Agent(), { maxRetries: 3 }),
  "undici's retry interceptor": () => new Agent().compose(interceptors.retry({ maxRetries: 3 })),
}

describe.each(Object.entries(CLIENTS))('%s', (_client, makeDispatcher) => {
  test('a retrying client succeeds on its first retry, in every framework and for every algorithm', async () => {
    const routes = Object.fromEntries(Object.entries(POLICIES).map(([path, limiters]) => [path, { limiters }]))
    const plain = new Agent()
    const patient = makeDispatcher()

    const refuse = async (url: string) => {
      for (let n = 0; n < 5; n++) {
        const response = await request(url, { dispatcher: plain })
        await response.body.dump()
        if (response.statusCode === 429) break
      }
    }
    const visit = async (url: string, statuses: () => readonly number[]) => {
      // On a slow machine a window may end before the patient client arrives: it has nothing to wait for then.
      for (let round = 0; round < 50 && !statuses().includes(429); round++) {
        await refuse(url)
        const response = await request(url, { dispatcher: patient, headers: { 'x-patient': 'yes' } })
        expect([url, response.statusCode, await response.body.text()]).toEqual([url, 200, 'done'])
      }
      // One refusal, and the next attempt succeeded.
      expect([url, statuses().join()]).toEqual([url, expect.stringMatching(/^(200,)*429,200$/)])
    }
    const visitAll = async (framework: string) => {
      const app = await start(framework, { routes })
      // On a busy machine a client may return just after the five seconds for which Node keeps idle connections.
      if ('keepAliveTimeout' in app.server) app.server.keepAliveTimeout = 60_000
      const sent = record(app)
      await Promise.all(Object.keys(POLICIES).map((path) => visit(`${app.url}${path}`, () => sent[path] ?? [])))
    }
    try {
      await Promise.all(Object.keys(FRAMEWORKS).map(visitAll))
    } finally {
      await Promise.all([plain.close(), patient.close()])
    }
  })
})

/** Sends three requests to limits that admit two. Resolves to the headers of each response with its verdict. */
async function conversation(framework: string, headers: HeadersOption): Promise<[Headers, Verdict][]> {
  const time = { now: 1_000_000 }
  const refusals: Verdict[] = []
  const body = (_request: unknown, verdict: Verdict) => {
    refusals.push(verdict)
    return 'no'
  }
  const limits = [perMinute(2), perSecond(5), gcra({ name: 'bucket', limit: 10, window: '1m', burst: 4 })]
  const limiters: AnyOptions[] = [
    { name: 'api', store: memoryStore({ clock: () => time.now }), headers, limits, respond: reject({ body }) },
  ]
  const app = await start(framework, { routes: { '/': { limiters } } })
  const responses: [Headers, Verdict][] = []
  for (let n = 0; n < 3; n++) {
    const response = await fetch(app.url)
    await response.text()
    responses.push([response.headers, (n < 2 ? app.verdicts.at(-1) : refusals.at(-1)) as Verdict])
    time.now += 7300
  }
  expect(responses.map(([, { allowed }]) => allowed)).toEqual([true, true, false])
  return responses
}

const wholeSeconds = (ms: number) => Math.ceil(ms / 1000)
const tightest = ({ limits }: Verdict) =>
  limits.reduce((least, limit) => (limit.remaining < least.remaining ? limit : least)) as LimitReport

describe.each(Object.keys(FRAMEWORKS))("express-rate-limit's parser, with %s", (framework) => {
  test.each<[string, HeadersOption]>([
    ['draft 7', 'draft-7'],
    ['draft 6', 'draft-6'],
    ['legacy headers with seconds since 1970', 'legacy'],
    ['legacy headers with seconds from now', { format: 'legacy', reset: 'delta-seconds' }],
  ])("express-rate-limit's parser reads %s", async (_form, headers) => {
    const before = Date.now()
    for (const [received, verdict] of await conversation(framework, headers)) {
      const { limit, remaining, resetAfterMs } = tightest(verdict)
      const read = parseRateLimit(received)
      expect(read).toMatchObject({ limit, remaining, used: limit - remaining })
      const resetMs = Number(read?.reset)
      // The parser adds whole seconds to its own time, a little later than ours.
      expect(resetMs).toBeGreaterThanOrEqual(before + wholeSeconds(resetAfterMs) * 1000 - 1000)
      expect(resetMs).toBeLessThanOrEqual(Date.now() + wholeSeconds(resetAfterMs) * 1000 + 1000)
    }
  })
})

describe.each(Object.keys(FRAMEWORKS))('a parser of structured fields, with %s', (framework) => {
  const item = ([value, parameters]: Item) => [value, Object.fromEntries(parameters)]
  const list = (field: string | null) => parseList(field as string).map((member) => item(member as Item))

  test.each<HeadersOption>(['draft-11', 'draft-8'])('a parser of structured fields reads %s', async (headers) => {
    for (const [received, verdict] of await conversation(framework, headers)) {
      expect(list(received.get('ratelimit'))).toEqual(
        verdict.limits.map(({ name, remaining, resetAfterMs, retryAfterMs, allowed }) => {
          const waitMs = headers === 'draft-11' && !allowed ? (retryAfterMs as number) : resetAfterMs
          return [name, { r: remaining, t: wholeSeconds(waitMs) }]
        }),
      )
      const retryAfter = received.get('retry-after')
      expect(retryAfter).toBe(verdict.allowed ? null : String(wholeSeconds(verdict.retryAfterMs as number)))
    }
  })

  test.each<HeadersOption>(['draft-11', 'draft-8'])(
    'a parser of structured fields reads the policies of %s',
    async (headers) => {
      for (const [received, verdict] of await conversation(framework, headers)) {
        expect(verdict.limits.map(({ name }) => name)).toEqual(['api-1m', 'api-1s', 'bucket'])
        expect(list(received.get('ratelimit-policy'))).toEqual([
          ['api-1m', { q: 2, w: 60 }],
          ['api-1s', { q: 5, w: 1 }],
          ['bucket', { q: 10, w: 60 }],
        ])
      }
    },
  )

  test('a parser of structured fields reads draft 7 and draft 6', async () => {
    for (const [received, verdict] of await conversation(framework, 'draft-7')) {
      const { limit, remaining, resetAfterMs } = tightest(verdict)
      const fields = [...parseDictionary(received.get('ratelimit') as string)].map(([key, [value]]) => [key, value])
      expect(Object.fromEntries(fields)).toEqual({ limit, remaining, reset: wholeSeconds(resetAfterMs) })
      expect(list(received.get('ratelimit-policy'))).toEqual([
        [2, { w: 60 }],
        [5, { w: 1 }],
        [10, { w: 60 }],
      ])
    }
    for (const [received, verdict] of await conversation(framework, 'draft-6')) {
      const { limit, remaining, resetAfterMs } = tightest(verdict)
      const numbers = ['limit', 'remaining', 'reset'].map((field) => Number(received.get(`ratelimit-${field}`)))
      expect(numbers).toEqual([limit, remaining, wholeSeconds(resetAfterMs)])
      expect(list(received.get('ratelimit-policy'))[0]).toEqual([2, { w: 60 }])
    }
  })
})
