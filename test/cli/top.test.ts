import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { run } from '@sluice/cli'
import { createLimiter, redisStore } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import { sluiceMetrics } from '@sluice/prometheus'
import { Redis } from 'ioredis'
import { Registry } from 'prom-client'
import { afterEach, describe, expect, test } from 'vitest'
import { startRedis } from '../support/redis-server.js'
import { sluice } from './support.js'

const closing: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

async function serve(listener: RequestListener): Promise<string> {
  const server: Server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`
}

/** A server that sends these texts in turn, and then repeats the last one. */
const showing = (...texts: string[]) => serve((_req, res) => res.end(texts.length > 1 ? texts.shift() : texts[0]))

const requests = (count: number, labels: Record<string, string> = {}) => {
  const all = { policy: 'api', limit: '', outcome: 'admitted', source: 'store', reported: 'false', ...labels }
  const shown = Object.entries(all).map(([name, value]) => `${name}="${value}"`)
  return `sluice_requests_total{${shown.join(',')}} ${count}\n`
}

const top = (...args: string[]) => sluice(['top', '--every', '100ms', '--count', '1', ...args])

async function figuresFrom(...args: string[]) {
  const { code, stdout, stderr } = await top('--json', ...args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** Rates depend on the clock, but their ratios are exact. */
const shareOf = (part: number, whole: number) => Math.round((100 * part) / whole)

test('top shows the growth between two polls, by policy and source', async () => {
  const url = await showing(
    requests(100) + requests(50, { outcome: 'limited', limit: 'minute' }),
    [
      requests(130),
      requests(80, { outcome: 'limited', limit: 'minute' }),
      requests(10, { outcome: 'limited', limit: 'day', source: 'deny-cache' }),
      requests(20, { policy: 'trial', outcome: 'limited', reported: 'true', limit: 'trial' }),
      requests(10, { policy: 'login', source: 'local' }),
      'sluice_queued_requests{policy="api"} 7\n',
      'sluice_store_available{store="redis"} 0\nsluice_store_pending{store="redis"} 3\n',
    ].join(''),
  )
  const { total, policies, sources, stores } = await figuresFrom(url)
  expect(shareOf(total.refused, total.decisions)).toBe(40)
  expect(shareOf(total.reported, total.decisions)).toBe(20)
  expect(shareOf(total.alone, total.decisions)).toBe(10)
  expect(policies.map(({ policy, limit, waiting }: never) => [policy, limit, waiting])).toEqual([
    ['api', 'minute', 7],
    ['trial', 'trial', 0],
    ['login', '', 0],
  ])
  expect(sources.map(([source, value]: [string, number]) => [source, shareOf(value, total.decisions)])).toEqual([
    ['store', 80],
    ['deny-cache', 10],
    ['local', 10],
  ])
  expect(stores).toEqual([{ store: 'redis', isAvailable: false, pending: 3 }])
})

test('top adds up several servers, and names one that stops responding', async () => {
  const one = await showing(requests(0), requests(10))
  let polls = 0
  const two = await serve((_req, res) => {
    polls++
    // Fails from the second poll on.
    if (polls > 1) res.writeHead(503)
    res.end(requests(5))
  })
  const figures = await figuresFrom(one, two)
  expect(figures).toMatchObject({ answered: 1, failures: { [two.replace('http://', '')]: 'it answers 503' } })
  expect(figures.total.decisions).toBeGreaterThan(0)
})

test('top counts a restarted server from 0, and leaves out earlier counts of a running one', async () => {
  const restarted = await showing(requests(1000), requests(10))
  const watched = await showing(requests(1_000_000), requests(1_000_010))
  const [first, second] = [await figuresFrom(restarted), await figuresFrom(watched)]
  for (const { total } of [first, second]) {
    expect(total.decisions).toBeGreaterThan(0)
    expect(total.decisions).toBeLessThanOrEqual(100)
  }
})

test('without a terminal top prints a line per poll, and ends when stopped', async () => {
  const url = await showing(requests(0), requests(10))
  const lines: string[] = []
  let stop = () => {}
  const stopped = new Promise<void>((resolve) => {
    stop = resolve
  })
  const write = (line: string) => {
    lines.push(line)
    if (lines.length === 2) stop()
  }
  const code = await run(['top', url, '--every', '100ms'], {
    env: {},
    stdout: { write },
    stderr: { write: (text) => lines.push(text) },
    untilStopped: () => stopped,
    version: '1.2.3',
  })
  expect(code).toBe(0)
  expect(lines).toEqual([
    expect.stringMatching(/^[\d.]+ decisions\/s, 0 refused\/s, 0 alone\/s, 0 waiting\n$/),
    '0 decisions/s, 0 refused/s, 0 alone/s, 0 waiting\n',
  ])
})

test('on a terminal top prints a table, in which no server can control the terminal', async () => {
  const evil = 'evil\u001b[2J'
  const url = await showing(
    requests(0, { policy: evil }),
    requests(10, { policy: evil, outcome: 'limited', limit: 'x' }),
  )
  let screen = ''
  const write = (text: string) => {
    screen += text
  }
  const stdout = { write, isTTY: true }
  await run(['top', url, '--every', '100ms', '--count', '1'], { env: {}, stdout, stderr: { write }, version: '1.2.3' })
  // The only escape sequences are those of top itself, which clear the screen.
  const [nothing, ...parts] = screen.split('\u001b')
  expect([nothing, parts[0], parts.length]).toEqual(['', '[H', 2])
  expect(parts[1]).toMatch(/^\[J1 of 1 servers answer\n/)
  expect(parts[1]).toMatch(/\nevil\\u001b\[2J +\d[\d.]* +\d[\d.]* +100 % +0 +0 +0 {2}x\n/)
})

test('top --offenders reads offenders from Redis', async () => {
  const server = await startRedis()
  const client = new Redis(server.url)
  const store = redisStore(client, { offenders: true, timeout: 10_000 })
  const register = new Registry()
  const metrics = sluiceMetrics({ register })
  closing.push(async () => {
    metrics.stop()
    await store.close()
    client.disconnect()
    await server.stop()
  })
  const limiter = createLimiter({ name: 'offended', store, limit: 1, window: '1h' })
  for (let n = 0; n < 5; n++) await limiter.consume('ann')
  // Refusals are reported every second.
  await expect.poll(async () => (await store.offenders({ policy: 'offended' })).refusals, { timeout: 30_000 }).toBe(4)

  const url = await serve(async (_req, res) => {
    // Each poll finds one more refusal.
    await limiter.consume('ann')
    res.end(await register.metrics())
  })
  const args = ['top', url, '--json', '--every', '100ms', '--count', '1', '--offenders']
  const { code, stdout, stderr } = await sluice(args, { REDIS_URL: server.url })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout).offenders).toEqual([
    { policy: 'offended', offenders: [{ kind: 'key', value: 'ann', refusals: expect.any(Number) }] },
  ])
})

test('top --offenders lists offenders under the policy of the document that refuses most', async () => {
  const server = await startRedis()
  const client = new Redis(server.url)
  const store = redisStore(client, { offenders: true, timeout: 10_000 })
  const register = new Registry()
  const metrics = sluiceMetrics({ register })
  closing.push(async () => {
    metrics.stop()
    await store.close()
    client.disconnect()
    await server.stop()
  })
  const limits = [{ name: 'burst', limit: 1, window: '1h' }]
  const loaded = await policies.from({ object: { version: 1, policies: { 'log-in': { limits } } } })
  const { limiter } = rateLimit({ name: 'of-document', policies: loaded, store })
  for (let n = 0; n < 3; n++) await limiter.consume({ ip: '192.0.2.7' }, { tier: 'log-in' })
  const counted = async () => (await store.offenders({ policy: 'log-in' })).refusals
  await expect.poll(counted, { timeout: 30_000 }).toBe(2)
  const url = await serve(async (_req, res) => {
    await limiter.consume({ ip: '192.0.2.7' }, { tier: 'log-in' })
    res.end(await register.metrics())
  })
  const args = ['top', url, '--json', '--every', '100ms', '--count', '1', '--offenders']
  const { stdout } = await sluice(args, { REDIS_URL: server.url })
  expect(JSON.parse(stdout).offenders).toEqual([
    { policy: 'log-in', offenders: [{ kind: 'ip', value: '192.0.2.7', refusals: expect.any(Number) }] },
  ])
})

describe('top: errors', () => {
  test.each([
    [[], /no server is named: sluice top http/],
    [['localhost:3000'], /URL: expected one such as http:.*got "localhost:3000"/],
    [['file:///etc/passwd'], /URL: expected/],
    [['http://user:s3cret@localhost/metrics'], /put the URL into METRICS_URL/],
    [['http://localhost', '--every', '1h'], /--every: expected a duration/],
    [['http://localhost', '--count', '0'], /--count: expected a whole number/],
    [['http://localhost', '--evry', '1s'], /did you mean --every/],
  ])('top rejects wrong arguments with a sentence: %j', async (args, message) => {
    const { code, stdout, stderr } = await sluice(['top', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(message)
    expect(stderr).not.toContain('s3cret')
  })

  test('top reports an unreachable server, a 404, and a redirect', async () => {
    const missing = await serve((_req, res) => void res.writeHead(404).end())
    const elsewhere = await serve((_req, res) => void res.writeHead(302, { location: missing }).end())
    const { code, stderr } = await top('http://127.0.0.1:1/metrics', missing, elsewhere)
    expect(code).toBe(2)
    expect(stderr).toMatch(/127\.0\.0\.1:1\/metrics shows no metrics: /)
    expect(stderr).toContain('shows no metrics: it answers 404')
    expect(stderr).toMatch(/shows no metrics: unexpected redirect/)
  })

  test('top stops reading an endless response', async () => {
    const endless = await serve((_req, res) => {
      const more = () => {
        while (res.write('#'.repeat(65_536)));
        if (!res.destroyed) res.once('drain', more)
      }
      more()
    })
    const { code, stderr } = await top(endless)
    expect(code).toBe(2)
    expect(stderr).toContain('more than 16 MiB')
  })
})

test('METRICS_URL may contain a password, which is sent but never printed', async () => {
  const seen: (string | undefined)[] = []
  const url = await serve((req, res) => {
    seen.push(req.headers.authorization)
    res.end(requests(1))
  })
  const given = url.replace('http://', 'http://ann:s3cret%20word@')
  const { code, stdout, stderr } = await sluice(['top', '--every', '100ms', '--count', '1'], { METRICS_URL: given })
  expect(code).toBe(0)
  expect(seen).toEqual(Array(2).fill(`Basic ${Buffer.from('ann:s3cret word').toString('base64')}`))
  expect(stdout + stderr).not.toContain('s3cret')
})
