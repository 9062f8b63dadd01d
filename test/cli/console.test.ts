import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@sluice/cli'
import { createLimiter, redisStore } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Answer, ask } from '../console/support.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})
beforeEach(() => redis.flush())

const stops: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop()
})

interface Opened {
  readonly port: number
  readonly secret: string
  ask(path: string, headers?: Record<string, string>, body?: unknown): Promise<Answer>
  exchange(secret: string): Promise<Answer>
}

/** Runs `sluice console` until the end of the test. */
async function opened(...args: string[]): Promise<Opened> {
  let printed = ''
  let stop = () => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  const output = (note: boolean) => ({
    write: (text: string) => {
      if (note) printed += text
    },
  })
  const ended = run(['console', ...args], {
    env: { REDIS_URL: redis.url },
    stdout: output(true),
    stderr: output(false),
    untilStopped: () => stopped,
    version: '1.2.3',
  })
  stops.push(() => {
    stop()
    return ended
  })
  await until('it prints its link', async () => printed.includes('\n'))
  const [, port, secret] = /^http:\/\/127\.0\.0\.1:(\d+)\/#([\w-]{43})\n$/.exec(printed) ?? []
  if (port === undefined || secret === undefined) throw new Error(`no link: ${printed}`)
  const own = { origin: `http://127.0.0.1:${port}`, 'sec-fetch-site': 'same-origin', 'sluice-console': '1' }
  const asked: Opened['ask'] = (path, headers = {}, body = undefined) =>
    ask(Number(port), path, {
      headers: { ...own, ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      body,
    })
  return { port: Number(port), secret, ask: asked, exchange: (given) => asked('/api/session', {}, { secret: given }) }
}

test('a link opens one session, once', async () => {
  const console = await opened()
  expect((await console.exchange('x'.repeat(43))).status).toBe(403)
  const { status, json } = await console.exchange(console.secret)
  expect(status).toBe(200)
  expect((await console.exchange(console.secret)).json.detail).toMatch(/opened already/)
  const about = await console.ask('/api/about', { 'sluice-session': json.session })
  expect(about.json).toMatchObject({ operator: { may: 'act' }, store: { kind: 'redis', state: 'available' } })
  // Another user of this machine knows the port, and neither the secret nor the session.
  const tried: Record<string, string>[] = [
    {},
    { 'sluice-session': console.secret },
    { 'sluice-session': '' },
    { authorization: json.session },
  ]
  for (const headers of tried) {
    expect((await console.ask('/api/about', headers)).status).toBe(403)
  }
})

test('the page is served without data, and its scripts are the only ones that may run', async () => {
  const { ask: asked } = await opened()
  const { status, text, headers } = await asked('/')
  expect(status).toBe(200)
  expect(text).toContain('<title>Sluice console</title>')
  expect(headers['content-security-policy']).toMatch(/script-src 'self'; .*frame-ancestors 'none'/)
})

test('only this machine is answered, without a proxy', async () => {
  const console = await opened()
  const { port } = console
  for (const host of [
    'evil.example',
    `evil.example:${port}`,
    '127.0.0.1',
    `127.0.0.1.evil.example:${port}`,
    `localhost:${port + 1}`,
  ]) {
    expect((await console.ask('/', { host, origin: `http://${host}` })).status).toBe(403)
  }
  for (const host of [`localhost:${port}`, `[::1]:${port}`, `LOCALHOST:${port}`]) {
    expect((await console.ask('/', { host, origin: `http://${host.toLowerCase()}` })).status).toBe(200)
  }
  for (const name of [
    'forwarded',
    'via',
    'x-forwarded-for',
    'x-forwarded-host',
    'x-forwarded-proto',
    'X-Forwarded-Anything',
  ]) {
    const answer = await console.ask('/', { [name]: '127.0.0.1' })
    expect(answer).toMatchObject({ status: 403, json: { detail: 'the console answers no proxies' } })
  }
})

test('pages of other origins cannot use the link', async () => {
  const console = await opened()
  const from = (headers: Record<string, string>) => console.ask('/api/session', headers, { secret: console.secret })
  expect((await from({ origin: 'https://evil.example' })).status).toBe(403)
  expect((await from({ 'sec-fetch-site': 'cross-site' })).status).toBe(403)
  expect((await from({ 'sluice-console': '0' })).status).toBe(403)
  expect((await from({ 'content-type': 'text/plain' })).status).toBe(415)
  expect((await console.exchange(console.secret)).status).toBe(200)
})

test('shows the limits of a document with its overrides, and what Redis stores of an identity', async () => {
  const file = join(mkdtempSync(join(tmpdir(), 'sluice-console-')), 'policies.yaml')
  writeFileSync(
    file,
    `version: 1
policies:
  search: { key: user, limits: [{ limit: 3, window: 1h }] }
overrides:
  - { policy: search, key: { user: ann }, limits: [{ limit: 30 }] }
`,
  )
  const client = new Redis(redis.port)
  const store = redisStore(client, { timeout: 10_000 })
  const mail = createLimiter({ name: 'mail', store, limit: 5, window: '1h' })
  await mail.consume('ann')
  const console = await opened('--document', file)
  const { session } = (await console.exchange(console.secret)).json
  const post = async (path: string, body: object) => (await console.ask(path, { 'sluice-session': session }, body)).json
  const ofAnn = await post('/api/identity', { identity: { kind: 'user', value: 'ann' } })
  expect(ofAnn.limits).toMatchObject([
    { limiter: 'default', policy: 'search', override: { index: 0 }, limits: [{ limit: 30 }] },
  ])
  const key = { kind: 'key', value: 'ann' }
  expect((await post('/api/identity', { identity: key, search: true })).stored.limits).toMatchObject([
    { policy: 'mail', used: 1 },
  ])
  await post('/api/block', { identity: key, policy: 'mail', for: '1h' })
  expect((await mail.consume('ann')).reason).toBe('blocked')
  await store.close()
  client.disconnect()
})

test('a console that is read only changes nothing', async () => {
  const console = await opened('--read-only')
  const { session } = (await console.exchange(console.secret)).json
  const answer = await console.ask(
    '/api/block',
    { 'sluice-session': session },
    { identity: { kind: 'ip', value: '192.0.2.7' }, for: '1h' },
  )
  expect(answer).toMatchObject({ status: 403, json: { detail: 'this console is read only' } })
})
