// Runs alone: it reads the figures of all stores of its process.
import { type ClientRequest, type IncomingMessage, request, type Server } from 'node:http'
import { createLimiter, memoryStore, redisStore, type Store, slidingLog } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { OFFENDERS } from '@sluice/core/store'
import compression from 'compression'
import { Redis } from 'ioredis'
import { afterEach, describe, expect, test, vi } from 'vitest'
import type { DecisionRow } from '../../packages/console/src/figures/answers.js'
import { Live } from '../../packages/console/src/figures/live.js'
import { contextOf } from '../support/context.js'
import { startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { APPS, ask, asOperator, authorize, type Before, portOf, type StartApp, withBody } from './support.js'

const closing: (() => unknown)[] = []
afterEach(async () => {
  vi.useRealTimers()
  for (const close of closing.splice(0).reverse()) await close()
})

interface Given {
  readonly store?: Store
  readonly before?: readonly Before[]
  readonly authorize?: (request: IncomingMessage) => unknown
}

async function served(start: StartApp, { store = memoryStore(), before = [], ...more }: Given = {}) {
  const limiter = createLimiter({ name: 'mail', store, limit: 2, window: '1h' })
  const server: Server = await start({ store, limiters: [limiter], authorize, ...more }, before)
  closing.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  return { store, limiter, port: portOf(server) }
}

interface Opened {
  readonly sent: ClientRequest
  readonly response: IncomingMessage
  // biome-ignore lint/suspicious/noExplicitAny: the JSON of any message
  readonly lines: any[]
}

function openStream(port: number, credential = 'ann', headers: Record<string, string> = {}): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const sent = request(
      {
        host: '127.0.0.1',
        port,
        path: '/sluice/api/stream',
        headers: { ...asOperator(port, credential), ...headers },
        agent: false,
      },
      (response) => {
        const opened: Opened = { sent, response, lines: [] }
        let rest = ''
        response.on('data', (chunk: Buffer) => {
          const parts = (rest + chunk.toString()).split('\n')
          rest = parts.pop() ?? ''
          opened.lines.push(...parts.map((line) => JSON.parse(line)))
        })
        response.on('error', () => {})
        resolve(opened)
      },
    )
    closing.push(() => sent.destroy())
    sent.on('error', reject)
    sent.end()
  })
}

describe.each(Object.entries(APPS))('%s', (_name, start) => {
  test('live figures and the last minutes show what was decided', async () => {
    const { limiter, port } = await served(start)
    for (let i = 0; i < 5; i++) await limiter.consume('ann')
    const headers = asOperator(port)
    await until('they are reported', async () => {
      const { json } = await ask(port, '/sluice/api/figures', { headers })
      return json.sum.rows.some(
        ({ outcome, count }: { outcome: string; count: number }) => outcome === 'limited' && count >= 3,
      )
    })
    const { status, json } = await ask(port, '/sluice/api/figures', { headers })
    expect(status).toBe(200)
    expect(json).toMatchObject({
      from: 'process',
      processCount: 1,
      notes: [],
      offenders: { counted: false, hint: expect.any(String) },
    })
    expect(json.processes).toMatchObject([
      { pid: process.pid, stores: expect.arrayContaining([expect.objectContaining({ state: 'available' })]) },
    ])
    const now = Date.now()
    const body = { from: now - 120_000, to: now, step: 'minute' }
    const history = (await ask(port, '/sluice/api/figures/history', { headers: withBody(port), body })).json
    expect(history.at).toHaveLength(history.decisions.length)
    const row = history.rows.find(
      (each: { policy: string; outcome: string }) => each.policy === 'mail' && each.outcome === 'limited',
    )
    expect(row.counts.reduce((sum: number, count: number) => sum + count, 0)).toBe(3)
  })

  test('a stream sends figures each second, behind compression too, and ends with its client', async () => {
    const { port } = await served(start, { before: [compression() as Before] })
    const { response, lines, sent } = await openStream(port, 'bob', { 'accept-encoding': 'gzip' })
    expect(response.statusCode).toBe(200)
    expect(response.headers).toMatchObject({
      'content-type': 'application/x-ndjson; charset=utf-8',
      'x-content-type-options': 'nosniff',
    })
    expect(response.headers['content-encoding']).toBeUndefined()
    await until('it goes on', () => lines.length >= 3)
    expect(lines.every(({ type }) => type === 'figures')).toBe(true)
    expect(lines[0]).toMatchObject({ from: 'process', sum: { totals: expect.any(Object) } })
    sent.destroy()
  })

  test('strangers, and pages of other origins, get no stream', async () => {
    const { port } = await served(start)
    expect((await openStream(port, 'eve')).response.statusCode).toBe(403)
    expect((await openStream(port, 'ann', { 'sec-fetch-site': 'cross-site' })).response.statusCode).toBe(403)
  })
})

const start = Object.values(APPS)[0] as StartApp

test('an operator has ten streams at a time: the next one is told to poll, until one ends', async () => {
  const { port } = await served(start)
  const all = await Promise.all(Array.from({ length: 10 }, () => openStream(port)))
  expect(all.map(({ response }) => response.statusCode)).toEqual(new Array(10).fill(200))
  const { status, json, headers } = await ask(port, '/sluice/api/stream', { headers: asOperator(port) })
  expect(status).toBe(503)
  expect(json.detail).toMatch(/10 of one operator.*poll/)
  expect(headers['retry-after']).toBe('5')
  expect((await openStream(port, 'bob')).response.statusCode).toBe(200)
  all[0]?.sent.destroy()
  await until('there is room', async () => (await openStream(port)).response.statusCode === 200)
})

test('calls of many policies that wait are all counted, and limits without a row of their own are together in one', async () => {
  const store = memoryStore()
  const { port } = await served(start, { store })
  const limits = [1, 2].map((n) => slidingLog({ name: `l${n}`, limit: n, window: '2m' }))
  const leaving = new AbortController()
  closing.push(() => leaving.abort())
  const failed = vi.fn()
  const names = Array.from({ length: 90 }, (_, i) => `wait-${i}`)
  for (const name of names) {
    const limiter = createLimiter({ name, store, limits: limits as never })
    await limiter.consume('ann')
    limiter.acquire('ann', { maxWait: '5m', signal: leaving.signal }).catch(failed)
  }
  await new Promise((resolve) => setImmediate(resolve))
  expect(failed.mock.calls).toEqual([])
  const figures = async () => (await ask(port, '/sluice/api/figures', { headers: asOperator(port) })).json
  await until('they are reported', async () => (await figures()).sum.waiting >= 90, {
    everyMs: 300,
    withinMs: 10_000,
  })
  const { sum, processes, notes } = await figures()
  expect(sum.waiting).toBe(90)
  expect(processes[0].waiting).toBe(90)
  expect(sum.gauges.filter(({ policy }: { policy: string }) => policy.startsWith('wait-'))).toHaveLength(90)
  expect(sum.used).toHaveLength(128)
  const decisions = sum.used.map(({ policy, decisions }: { policy: string; decisions: number }) => ({
    policy,
    decisions,
  }))
  expect(decisions.at(-1)).toEqual({ policy: 'other', decisions: expect.any(Number) })
  const named = decisions.filter(({ policy }: { policy: string }) => policy.startsWith('wait-'))
  const all = [...named, decisions.at(-1)].reduce((total: number, row) => total + row.decisions, 0)
  expect(all % (2 * names.length)).toBe(0)
  expect(notes).toEqual([expect.stringMatching(`Too many limits for a row each.* \\(pid ${process.pid}\\)`)])
})

test('all listeners share one reader, which reads once a second and stops with the last of them', async () => {
  const store = memoryStore()
  let reads = 0
  const { port } = await served(start, {
    store: new Proxy(store, {
      get(target, name) {
        if (name === OFFENDERS) reads++
        const value = Reflect.get(target, name, target)
        return typeof value === 'function' ? value.bind(target) : value
      },
    }),
  })
  const opened = await Promise.all([...Array.from({ length: 9 }, () => openStream(port)), openStream(port, 'bob')])
  const before = reads
  await until('each has three lines', () => opened.every(({ lines }) => lines.length >= 3))
  const lines = Math.max(...opened.map(({ lines }) => lines.length))
  expect(reads - before).toBeLessThanOrEqual(lines + 1)
  for (const { sent } of opened) sent.destroy()
})

test('a store that is away shows as a problem, and the stream goes on when it is back', async () => {
  const redis = await startRedis()
  closing.push(() => redis.stop())
  const client = new Redis(redis.port)
  client.on('error', () => {})
  closing.push(() => client.disconnect())
  const store = redisStore(client, { warnings: { SLUICE_STORE_UNAVAILABLE: false } })
  closing.push(() => store.close())
  expect((await new Live(store).read()).notes).toEqual([expect.stringMatching(/set report: liveFigures\(\) in/)])
  const { port } = await served(start, { store })
  closing.push(() => redis.kill('SIGCONT'))
  redis.kill('SIGSTOP')
  const { lines } = await openStream(port)
  await until('it says so', () => lines.length > 0)
  expect(lines[0]).toMatchObject({ type: 'problem', status: 503, detail: expect.stringMatching(/\S+ \S+/) })
  redis.kill('SIGCONT')
  await until('it goes on', () => lines.some(({ type }) => type === 'figures'))
})

test('refusals that are only reported count apart', async () => {
  const { store, port } = await served(APPS.Koa as StartApp)
  const headers = asOperator(port)
  const sum = async () => (await ask(port, '/sluice/api/figures', { headers })).json.sum
  const before = (await sum()).totals.reported
  const guard = createGuard({ name: 'tried', store, limit: 1, window: '1h', enforce: { mode: 'report' } })
  for (let i = 0; i < 3; i++) expect((await guard(contextOf({ ip: '192.0.2.7' }))).proceed).toBe(true)
  await until('they are counted', async () => (await sum()).totals.reported === before + 2)
  // Those of the tests before this one may be counted meanwhile.
  const { totals, rows } = await sum()
  const isRefused = ({ reported, outcome, source }: DecisionRow) =>
    !reported && outcome !== 'admitted' && outcome !== 'left' && source !== 'response'
  const refused: DecisionRow[] = rows.filter(isRefused)
  expect(totals.refused).toBe(refused.reduce((all, { count }) => all + count, 0))
  expect(refused.filter(({ policy }) => policy === 'tried')).toEqual([])
})
