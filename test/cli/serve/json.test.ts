import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { ask, decide, documentOf, endWithTests, fileOf, json, refused, serving, THREE } from './support.js'

endWithTests()

const ANN = { path: '/', ip: '192.0.2.7' }

test('a client over its limit is refused with everything for its response, and another is admitted', async () => {
  const decider = await serving(json(THREE))
  expect(decider.stdout).toMatch(
    /^sluice decides for json on http:\/\/127\.0\.0\.1:\d+, by version [0-9a-f]+ of the document, in the memory of this process\n$/,
  )
  const first = await decide(decider, ANN)
  expect(first.status).toBe(200)
  expect(first.json).toMatchObject({
    allowed: true,
    status: 200,
    decidedBy: 'store',
    headers: { RateLimit: '"all";r=2;t=60', 'RateLimit-Policy': '"all";q=3;w=60' },
    limits: [{ name: 'all', limit: 3, remaining: 2 }],
  })
  await decide(decider, ANN)
  await decide(decider, ANN)
  const refusal = (await decide(decider, ANN)).json
  expect(refusal).toMatchObject({ allowed: false, status: 429, decidedBy: 'store', reason: 'limited' })
  expect(refusal.headers).toMatchObject({
    'Retry-After': expect.stringMatching(/^\d+$/),
    RateLimit: expect.stringMatching(/^"all";r=0;t=\d+$/),
    'Cache-Control': 'no-store',
  })
  expect(JSON.parse(refusal.body)).toMatchObject({ status: 429, 'violated-policies': ['all'] })
  expect(refusal.retryAfterMs).toBeGreaterThan(0)
  expect((await decide(decider, { ...ANN, ip: '192.0.2.8' })).json.allowed).toBe(true)
})

test('a batch is decided in order, each request by itself', async () => {
  const decider = await serving(json(THREE))
  const { json: batch } = await decide(decider, { requests: [ANN, ANN, { ...ANN, ip: '2001:db8::1' }, ANN, ANN] })
  expect(batch.decisions.map(({ status }: { status: number }) => status)).toEqual([200, 200, 200, 200, 429])
})

test('a request that matches no policy is admitted with decidedBy "none"', async () => {
  const decider = await serving(
    json(documentOf('api: { match: { paths: [/api/**] }, limits: [{ limit: 1, window: 1m }] }')),
  )
  expect((await decide(decider, ANN)).json).toEqual({ allowed: true, status: 200, decidedBy: 'none', headers: {} })
})

test('callers can send keys and tiers that the command line names', async () => {
  const text = documentOf(`
api:
  key: user
  tier: plan
  tiers: { free: [{ limit: 1, window: 1m }], paid: [{ limit: 2, window: 1m }] }`)
  const decider = await serving(json(text, '--key', 'user', '--tier', 'plan'))
  const decisionOf = async (user: string | number, plan: string) =>
    (await decide(decider, { path: '/', keys: { user }, tiers: { plan } })).json
  expect((await decisionOf('ann', 'free')).allowed).toBe(true)
  expect((await decisionOf('ann', 'free')).status).toBe(429)
  expect([(await decisionOf(7, 'paid')).allowed, (await decisionOf(7, 'paid')).allowed]).toEqual([true, true])
  const unknown = await decisionOf('ann', 'gold')
  expect(unknown).toMatchObject({ allowed: false, status: 400, decidedBy: 'none' })
  expect(JSON.parse(unknown.body).detail).toContain('expected "free" or "paid", got "gold"')
  expect((await decide(decider, { path: '/', tiers: { plan: 'free' } })).json).toMatchObject({
    allowed: false,
    status: 400,
  })
  expect((await decide(decider, { path: '/', keys: {}, tiers: { plan: 'free' } })).json.status).toBe(400)
})

test.each<[string, object, string]>([
  ['key', { keys: { usr: 'ann' } }, 'keys: "usr": unknown name (expected user, by --key of the decider)'],
  ['key of every object', { keys: { toString: 'x' } }, 'keys: "toString": unknown name (expected user'],
  ['tier', { tiers: { plna: 'paid' } }, 'tiers: "plna": unknown name (expected plan, by --tier of the decider)'],
])('a misspelt %s gets 400 with its name, and charges nothing, in a batch as well', async (_, wrong, detail) => {
  const policies = `
all: { limits: [{ limit: 3, window: 1m }] }
user: { match: { paths: [/user] }, key: user, limits: [{ limit: 3, window: 1m }] }
plan: { match: { paths: [/plan] }, tier: plan, tiers: { paid: [{ limit: 3, window: 1m }] } }`
  const decider = await serving(json(documentOf(policies), '--key', 'user', '--tier', 'plan'))
  for (const request of [{ ...ANN, ...wrong }, { requests: [ANN, { ...ANN, ...wrong }] }]) {
    const answer = await decide(decider, request)
    expect([answer.status, answer.json.detail]).toEqual([400, expect.stringContaining(detail)])
  }
  expect((await decide(decider, ANN)).json.limits[0].remaining).toBe(2)
})

test('a key or tier that the command line does not name gets 400', async () => {
  const decider = await serving(json(THREE))
  const detail = async (more: object) => (await decide(decider, { ...ANN, ...more })).json.detail
  expect(await detail({ keys: { user: 'ann' } })).toBe(
    'keys: "user": unknown name (expected none: the decider has no --key)',
  )
  expect(await detail({ tiers: { plan: 'paid' } })).toContain('tiers: "plan": unknown name (expected none')
})

test('a request can have a cost by unit, and each limit takes its own', async () => {
  const text = documentOf(
    'chat: { limits: [{ limit: 3, window: 1d, name: a }, { algorithm: gcra, unit: tokens, limit: 99, window: 1d, name: b }] }',
  )
  const decider = await serving(json(text))
  const limits = async (cost: unknown) =>
    (await decide(decider, { ...ANN, cost })).json.limits?.map(({ remaining }: { remaining: number }) => remaining)
  expect(await limits({ tokens: 60 })).toEqual([2, 39])
  expect(await limits({ tokens: 40 })).toEqual([2, 39])
  expect(await limits({ requests: 2, tokens: 0 })).toEqual([0, 39])
  for (const [cost, detail] of [
    [{ token: 5 }, 'cost: expected units that limits count, "requests" or "tokens", got "token"'],
    [{ tokens: 0.5 }, 'cost.tokens: expected a whole number from 0 to 1000000000'],
    [{ tokens: '5' }, 'cost.tokens: expected a whole number from 0 to 1000000000'],
    [[5], 'cost: expected an object'],
    [null, 'cost: expected an object'],
  ] as const) {
    const { status, json: body } = await decide(decider, { ...ANN, cost })
    expect([status, body.status]).toContain(400)
    expect(JSON.stringify(body).replaceAll('\\', '')).toContain(detail)
  }
})

test('a request can have any cost, including 0', async () => {
  const decider = await serving(json(THREE))
  expect((await decide(decider, { ...ANN, cost: 3 })).json.allowed).toBe(true)
  expect((await decide(decider, { ...ANN, cost: 0 })).json).toMatchObject({
    allowed: true,
    headers: { RateLimit: expect.stringContaining('r=0') },
  })
  expect((await decide(decider, { ...ANN, cost: 1 })).json.allowed).toBe(false)
  expect((await decide(decider, { ...ANN, cost: 4 })).json.reason).toBe('impossible')
})

test('a policy in report mode refuses nothing, and reports what it would refuse', async () => {
  const decider = await serving(
    json(documentOf('all: { enforce: { mode: report }, limits: [{ limit: 1, window: 1m }] }')),
  )
  await decide(decider, ANN)
  expect((await decide(decider, ANN)).json).toMatchObject({ allowed: true, reported: true, wouldBeAllowed: false })
})

test('policies match the hosts and headers that callers send', async () => {
  const text = documentOf(
    'api: { match: { hosts: [api.example.com], headers: { x-beta: "1" } }, limits: [{ limit: 1, window: 1m }] }',
  )
  const decider = await serving(json(text))
  const decisionOf = async (headers: object) => (await decide(decider, { ...ANN, headers })).json.decidedBy
  expect(await decisionOf({ Host: 'api.example.com', 'X-Beta': '1' })).toBe('store')
  expect(await decisionOf({ Host: 'api.example.com' })).toBe('none')
  expect(await decisionOf({ 'X-Beta': '1' })).toBe('none')
})

test.each<[string, unknown, string]>([
  ['no JSON', '{', 'expected a body of JSON in UTF-8'],
  ['nothing', '', 'expected a body of JSON in UTF-8'],
  ['a text', '"a"', 'body: expected an object'],
  ['null', 'null', 'body: expected an object'],
  ['an array', [], 'body: expected an object'],
  ['no path', {}, 'path: expected a path that begins with /'],
  ['a path of a URL', { path: 'http://a/b' }, 'path: expected a path that begins with /'],
  ['a path with a line break', { path: '/a\r\nb' }, 'path: expected a path that begins with /'],
  ['a misspelt field', { ...ANN, Ip: '1.2.3.4' }, '"Ip": unknown field (expected method, path, ip'],
  ['__proto__', '{"path":"/","__proto__":{"ip":"1.2.3.4"}}', '"__proto__": unknown field'],
  ['a wrong address', { ...ANN, ip: '192.0.2.7:80' }, 'ip: expected an address'],
  ['an address of another type', { ...ANN, ip: 7 }, 'ip: expected an address'],
  ['a method with a space', { ...ANN, method: 'G T' }, 'method: expected a method such as GET'],
  [
    'a header twice',
    { ...ANN, headers: { a: '1', A: '2' } },
    'headers: expected each name once, whatever its case: "a"',
  ],
  ['a header that is no text', { ...ANN, headers: { a: 1 } }, 'headers: expected texts by their names'],
  ['an empty key', { ...ANN, keys: { user: '' } }, 'keys: expected texts or whole numbers by their names'],
  ['an object as a key', { ...ANN, keys: { user: {} } }, 'keys: expected texts or whole numbers by their names'],
  ['half a unit', { ...ANN, cost: 0.5 }, 'cost: expected a whole number from 0 to 1000000000'],
  ['a cost below 0', { ...ANN, cost: -1 }, 'cost: expected a whole number from 0'],
  ['an endless cost', '{"path":"/","cost":1e999}', 'cost: expected a whole number from 0'],
  ['an empty batch', { requests: [] }, 'requests: expected an array of 1 to 100 requests'],
  ['a huge batch', { requests: Array(101).fill(ANN) }, 'requests: expected an array of 1 to 100 requests'],
  ['a batch and more', { requests: [ANN], path: '/' }, '"path": unknown field (expected requests)'],
  ['one mistake in a batch', { requests: [ANN, { ...ANN, ip: 'x' }] }, 'requests[1].ip: expected an address'],
  ['deep nesting', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, 'body: expected an object'],
])('%s gets 400 with a sentence, and charges nothing', async (_, request, sentence) => {
  const decider = await serving(json(THREE))
  const { status, headers, json: problem } = await decide(decider, request)
  expect([status, headers['content-type']]).toEqual([400, 'application/problem+json; charset=utf-8'])
  expect(problem.detail).toContain(sentence)
  expect((await decide(decider, ANN)).json.limits[0].remaining).toBe(2)
})

test.each<[string, Parameters<typeof ask>[1], number]>([
  ['another path', { path: '/' }, 404],
  ['a path below', { path: '/v1/decide/', method: 'POST' }, 404],
  ['an absolute form', { path: 'http://127.0.0.1/v1/decide', method: 'POST' }, 404],
  ['an encoded path', { path: '/v1/x/%2e%2e/decide', method: 'POST' }, 404],
  ['another method', { method: 'GET' }, 405],
  ['a form', { method: 'POST', headers: [['Content-Type', 'text/plain']], body: JSON.stringify(ANN) }, 415],
  [
    'a compressed body',
    {
      method: 'POST',
      headers: [
        ['Content-Type', 'application/json'],
        ['Content-Encoding', 'gzip'],
      ],
      body: 'x',
    },
    415,
  ],
  [
    'a page in a browser',
    {
      method: 'POST',
      headers: [
        ['Content-Type', 'application/json'],
        ['Origin', 'http://127.0.0.1'],
      ],
      body: JSON.stringify(ANN),
    },
    403,
  ],
  [
    'no UTF-8',
    { method: 'POST', headers: [['Content-Type', 'application/json']], body: new Uint8Array([0x22, 0xff, 0x22]) },
    400,
  ],
])('%s gets the status %i', async (_, request, status) => {
  const decider = await serving(json(THREE))
  const answer = await ask(decider, request)
  expect([answer.status, answer.json.status]).toEqual([status, status])
  expect(answer.json.detail).toMatch(/^expected|^Content-Type: expected/)
})

test('a wrong document is not served, with file, line and column', async () => {
  const { code, stdout, stderr } = await refused(json(documentOf('all: { limits: [{ limt: 3, window: 1m }] }')))
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/\.yaml:3:\d+: policies\.all\.limits\[0\]\.limt: unknown field/)
})

test('a used address is reported', async () => {
  const { port } = await serving(json(THREE))
  const { code, stderr } = await refused([
    '--document',
    fileOf(THREE),
    '--dialect',
    'json',
    '--listen',
    `127.0.0.1:${port}`,
  ])
  expect([code, stderr]).toEqual([1, expect.stringContaining('EADDRINUSE')])
})

test('the examples of the documentation have the responses that it shows', async () => {
  const page = readFileSync(new URL('../../../docs/decider.md', import.meta.url), 'utf8')
  const requests = [...page.matchAll(/-d '(.*)'\n# (.*)/g)]
  expect(requests).toHaveLength(2)
  for (const [, request = '', shown = ''] of requests) {
    const decider = await serving(json(THREE))
    const { text } = await decide(decider, request)
    // An ellipsis in the documentation stands for anything.
    const parts = shown.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    expect(text).toMatch(new RegExp(`^${parts.join('.*')}$`))
  }
})

test('a window of the calendar ends at midnight of its time zone', async () => {
  const limit = '{ algorithm: fixedWindow, limit: 2, window: day, timeZone: Pacific/Kiritimati }'
  const decider = await serving(json(documentOf(`quota: { limits: [${limit}] }`)))
  const first = (await decide(decider, ANN)).json
  expect(first.headers['RateLimit-Policy']).toBe('"quota";q=2;w=86400')
  await decide(decider, ANN)
  const { allowed, retryAfterMs } = (await decide(decider, ANN)).json
  expect(allowed).toBe(false)
  // 14 hours ahead of UTC.
  const end = (Date.now() + retryAfterMs + 14 * 3_600_000) % 86_400_000
  expect(Math.min(end, 86_400_000 - end)).toBeLessThan(5000)
})
