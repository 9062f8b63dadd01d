// Release: waits for what processes write each second. Runs alone: it watches every decision of its process.
import { randomUUID } from 'node:crypto'
import { createServer, request, type Server } from 'node:http'
import { recordTraffic } from '@sluice/console'
import { consoleFor } from '@sluice/console/express'
import { createLimiter, memoryStore, type Store } from '@sluice/core'
import { rateLimit } from '@sluice/express'
import { type Policies, policies } from '@sluice/policies'
import express from 'express'
import { beforeAll, describe, expect, test } from 'vitest'
import { closedAfterEach } from '../support/closed-after-each.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { ask, asOperator, authorize, portOf, storeOnRedis, withBody } from './support.js'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
  return () => redis.stop()
})

const open = closedAfterEach()

const storeOn = (prefix: string) => storeOnRedis(redis.port, prefix, open)

const STORES: Readonly<Record<string, () => Promise<Store>>> = {
  'in memory': async () => memoryStore({ maxKeys: 100_000 }),
  'on Redis': () => storeOn(`${randomUUID()}:`),
}

/** A service behind a proxy, with a console beside it. */
async function served(store: Store, options: object = { traffic: true }, document?: Policies) {
  const api = document
    ? rateLimit({ store, policies: document })
    : rateLimit({ name: 'api', store, limit: 3, window: '1h' })
  const login = rateLimit({ name: 'login', store, limit: 1, window: '1h', enforce: { mode: 'report' } })
  const app = express().set('trust proxy', 1)
  const console = consoleFor({
    store,
    limiters: document ? [] : [api, login],
    authorize: authorize as never,
    ...options,
  })
  app.use('/sluice', console)
  if (!document) app.use('/login', login)
  app.use(api, (_req, res) => void res.send('ok'))
  const server = createServer(app)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  open.push(
    () => closed(server),
    () => console.close(),
  )
  const port = portOf(server)
  return {
    port,
    console,
    send: (ip: string, path: string) => sent(port, ip, path),
    traffic: (body: object = {}) => {
      const to = Date.now() + 60_000
      const from = to - 3_600_000
      return ask(port, '/sluice/api/traffic', { headers: withBody(port, 'bob'), body: { from, to, ...body } })
    },
  }
}

function closed(server: Server): Promise<unknown> {
  server.closeAllConnections()
  return new Promise((resolve) => server.close(resolve))
}

/** A path as it is: others would be corrected. */
function sent(port: number, ip: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { 'x-forwarded-for': ip }
    request({ host: '127.0.0.1', port, path, headers, agent: false }, (response) => {
      response.resume().on('end', () => resolve(response.statusCode ?? 0))
    })
      .on('error', reject)
      .end()
  })
}

describe.each(Object.keys(STORES))('%s', (name) => {
  const storeOf = STORES[name] as () => Promise<Store>

  test('traffic shows where requests come from, and each value filters the others', async () => {
    const { send, traffic } = await served(await storeOf())
    for (let n = 0; n < 5; n++) await send('192.0.2.7', `/orders/${n}000?key=secret`)
    for (let n = 0; n < 2; n++) await send('192.0.2.9', '/login')
    await send('2001:db8:1:2::3', '/health')
    const { status, json } = await traffic()
    expect(status).toBe(200)
    expect(json).toMatchObject({ decisions: 10, refused: 2, processes: 1, step: 'minute', notes: [] })
    const of = (field: string) =>
      Object.fromEntries(
        json[field].entries.map((each: Record<string, number>) => [each.value, [each.decisions, each.refused]]),
      )
    expect(of('policies')).toEqual({ api: [8, 2], login: [2, 0] })
    expect(of('reasons')).toEqual({ admitted: [7, 0], limited: [2, 2], 'reported:limited': [1, 0] })
    expect(of('paths')).toEqual({ '/orders/:number': [5, 2], '/login': [4, 0], '/health': [1, 0] })
    expect(of('networks')).toEqual({ '192.0.2.0/24': [9, 2], '2001:db8:1::/48': [1, 0] })
    expect(
      json.clients.entries.map((each: { client: object; decisions: number }) => [each.client, each.decisions]),
    ).toEqual([
      [{ kind: 'ip', value: '192.0.2.7' }, 5],
      [{ kind: 'ip', value: '192.0.2.9' }, 4],
      [{ kind: 'ip', value: '2001:db8:1:2::/64' }, 1],
    ])
    expect(json.clients.error).toBe(0)
    const refused = await traffic({ policy: 'api', reason: 'limited', by: 'refused' })
    expect(refused.json.clients.entries).toMatchObject([{ client: { value: '192.0.2.7' }, decisions: 2, refused: 2 }])
    const [{ value: id }] = json.clients.entries
    expect(id).toMatch(/^[\w-]{16}$/)
    const ofClient = await traffic({ client: id })
    expect(ofClient.json.client).toEqual({ kind: 'ip', value: '192.0.2.7' })
    expect(ofClient.json.paths.entries).toEqual([{ value: '/orders/:number', decisions: 5, refused: 2 }])
    expect(ofClient.json.clients.entries).toMatchObject([{ value: id, decisions: 5, refused: 2 }])
    expect(ofClient.json.networks.entries).toEqual([{ value: '192.0.2.0/24', decisions: 5, refused: 2 }])
    const ofNetwork = (await traffic({ network: '2001:db8:1::/48' })).json
    expect(ofNetwork.clients.entries).toMatchObject([{ client: { value: '2001:db8:1:2::/64' }, decisions: 1 }])
    expect(ofNetwork.networks.entries).toEqual([{ value: '2001:db8:1::/48', decisions: 1, refused: 0 }])
    expect((await traffic({ policy: 'login' })).json.policies.entries).toEqual([
      { value: 'login', decisions: 2, refused: 0 },
    ])
    expect((await traffic({ client: 'A'.repeat(16) })).json).toMatchObject({ client: null, paths: { entries: [] } })
  })

  test('a policy of a document is a filter: a request counts once, for those that admit it or that refuse it', async () => {
    const store = await storeOf()
    const loaded = await policies.from({
      load: () => `{ version: 1, policies: {
        all: { limits: [{ limit: 100, window: 1h }] },
        login: { match: { paths: [/login] }, limits: [{ limit: 2, window: 1h }] } } }`,
    })
    const { send, traffic, port } = await served(store, { traffic: true, policies: loaded }, loaded)
    for (let n = 0; n < 5; n++) await send('192.0.2.7', '/login')
    await send('192.0.2.7', '/other')
    const { json } = await traffic()
    const of = (all: { entries: readonly { value: string; decisions: number; refused: number }[] }) =>
      Object.fromEntries(all.entries.map(({ value, decisions, refused }) => [value, [decisions, refused]]))
    expect(json).toMatchObject({ decisions: 6, refused: 3 })
    expect(of(json.policies)).toEqual({ all: [3, 0], login: [5, 3] })
    expect(of(json.reasons)).toEqual({ admitted: [3, 0], limited: [3, 3] })
    expect(of((await traffic({ policy: 'login' })).json.paths)).toEqual({ '/login': [5, 3] })
    const refused = await traffic({ reason: 'refused' })
    expect(of(refused.json.policies)).toEqual({ login: [3, 3] })
    expect(of(refused.json.networks)).toEqual({ '192.0.2.0/24': [3, 3] })
    // So do the last refusals.
    const last = await ask(port, '/sluice/api/refusals', { headers: asOperator(port) })
    expect(last.json.refusals.map(({ policy }: { policy: string }) => policy)).toEqual(['login', 'login', 'login'])
    // One is over 80 % of its limit, and is near it by the name of its policy.
    const near = await ask(port, '/sluice/api/near', { headers: asOperator(port) })
    expect(near.json.entries).toMatchObject([{ policy: 'login', limit: 'login', used: 1 }])
  })

  test('an identity that was erased is named nowhere in traffic', async () => {
    const store = await storeOf()
    const { send, traffic } = await served(store)
    for (let n = 0; n < 5; n++) await send('192.0.2.7', '/')
    const { json } = await traffic()
    const [{ value: id }] = json.clients.entries
    await store.forget?.({ ip: '192.0.2.7' })
    await send('192.0.2.8', '/')
    const after = (await until('a client that came later is shown', async () => {
      const { text, json } = await traffic({ top: 50 })
      return text.includes('192.0.2.8') ? { text, json } : undefined
    })) as { text: string }
    expect(after.text).not.toContain('192.0.2.7')
    expect((await traffic({ client: id })).json.client).toBe(null)
  })

  test('while traffic is off, nothing watches decisions and nothing is kept', async () => {
    const { send, traffic } = await served(await storeOf(), {})
    await send('192.0.2.7', '/')
    expect((await traffic()).json).toMatchObject({ decisions: 0, processes: 0 })
  })
})

test('a limiter without HTTP counts, too, and a process without a console', async () => {
  const prefix = `${randomUUID()}:`
  const stop = recordTraffic(await storeOn(prefix))
  open.push(stop)
  const { traffic } = await served(await storeOn(prefix))
  const mail = createLimiter({ name: 'mail', store: memoryStore(), limit: 20, window: '1h' })
  for (let n = 0; n < 3; n++) await mail.consume('ann')
  // The other one writes each ten seconds.
  const { json } = (await until(
    'the other process has written',
    async () => {
      const answer = await traffic()
      return answer.json.processes === 2 ? answer : undefined
    },
    { everyMs: 500 },
  )) as Awaited<ReturnType<typeof traffic>>
  expect(json.policies.entries).toEqual([{ value: 'mail', decisions: 6, refused: 0 }])
  expect(json.paths.entries).toEqual([])
})

test('every key of traffic in Redis ends, and no value names a client but that of its id', async () => {
  const prefix = `${randomUUID()}:`
  const { send, traffic } = await served(await storeOn(prefix))
  await send('192.0.2.7', '/')
  await traffic()
  const keys = (await redis.call('KEYS', `${prefix}v1:{console}:*`)) as string[]
  expect(keys.length).toBeGreaterThan(3)
  for (const key of keys) {
    expect(Number(await redis.call('PTTL', key))).toBeGreaterThan(0)
    if (!/:(top|client|id):/.test(key)) continue
    expect(String(await redis.call('GET', key)).includes('192.0.2.7')).toBe(key.includes(':client:'))
  }
})

test.each([
  [{ from: 2, to: 1 }, /to/],
  [{ from: 0, to: 86_400_001 }, /24 hours/],
  [{ from: 0, to: 1, top: 51 }, /top/],
  [{ from: 0, to: 1, client: 'x'.repeat(33) }, /client/],
  [{ from: 0, to: 1, sort: 'x' }, /no other fields/],
])('a question that the console does not answer is rejected: %j', async (body, detail) => {
  const { port } = await served(memoryStore())
  const answer = await ask(port, '/sluice/api/traffic', { headers: withBody(port), body })
  expect(answer).toMatchObject({ status: 400, json: { detail: expect.stringMatching(detail) } })
})

test('names of an attacker are counted, and come back as ASCII', async () => {
  const { send, traffic, port } = await served(memoryStore())
  await send('192.0.2.7', `/<script>alert(1)</script>/${'a'.repeat(8000)}`)
  await send('192.0.2.7', '/%00%1b[31m/__proto__/constructor')
  const { text, json, status } = await traffic({ path: '/__proto__' })
  expect(status).toBe(200)
  expect(text).toMatch(/^[\x20-\x7e]*$/)
  expect(text).not.toMatch(/[<>]/)
  for (const { value } of json.paths.entries) expect(value.length).toBeLessThan(512)
  expect((await ask(port, '/sluice/api/traffic', { headers: asOperator(port) })).status).toBe(405)
})

describe.each(Object.keys(STORES))('%s, near a limit', (name) => {
  const storeOf = STORES[name] as () => Promise<Store>

  async function near(limit: number) {
    const store = await storeOf()
    const { port } = await served(store)
    const mail = createLimiter({ name: 'mail', store, limit, window: '1h' })
    return {
      store,
      mail,
      /** Answers are given again for two seconds. */
      read: async () => {
        await new Promise((resolve) => setTimeout(resolve, 2100))
        return (await ask(port, '/sluice/api/near', { headers: asOperator(port, 'bob') })).json
      },
    }
  }

  test('clients above 80 % of a limit are near, until their use falls or they are erased', async () => {
    const { store, mail, read } = await near(10)
    for (let n = 0; n < 8; n++) await mail.consume('ann')
    for (let n = 0; n < 7; n++) await mail.consume('bob')
    for (let n = 0; n < 12; n++) await mail.consume('eve')
    const first = await read()
    expect(first).toMatchObject({
      processes: 1,
      entries: [
        { client: { value: 'ann' }, policy: 'mail', limit: 'mail', used: 0.8, remaining: 2 },
        { client: { value: 'eve' }, used: 1, remaining: 0 },
      ],
    })
    await mail.reset('ann')
    await mail.consume('ann')
    await store.forget?.({ [first.entries[1].client.kind]: 'eve' })
    expect((await read()).entries).toEqual([])
  })

  test('of three thousand clients at a limit, 200 are shown', async () => {
    const { mail, read } = await near(1)
    for (let n = 0; n < 3000; n++) await mail.consume(`user ${n} ${'<b>'.repeat(20)}`)
    const { entries } = await read()
    expect(entries).toHaveLength(200)
  }, 60_000)
})

describe.each(Object.keys(STORES))('%s, the live tail', (name) => {
  const storeOf = STORES[name] as () => Promise<Store>

  /** Asks each half second until there are rows. */
  async function tailOf(port: number, filter: object, act: () => Promise<unknown>, isSampled = false) {
    const rows: { clients: string[]; reason: string; path?: string }[] = []
    let after = 0
    let [share, decisions] = [1, 0]
    await until(
      'decisions are shown',
      async () => {
        const { json, status } = await ask(port, '/sluice/api/tail', {
          headers: withBody(port, 'bob'),
          body: { after, ...filter },
        })
        expect(status).toBe(200)
        after = json.after
        decisions += json.decisions
        if (json.rows.length > 0) share = json.share
        rows.push(...json.rows)
        const isDone = isSampled ? share < 1 : rows.length > 0
        if (!isDone) await act()
        return isDone
      },
      { everyMs: 500 },
    )
    return { rows, share, decisions }
  }

  test('a filter shows its decisions alone, from all processes', async () => {
    const { send, port, traffic } = await served(await storeOf())
    await send('192.0.2.7', '/orders/1')
    const [{ value: client }] = (await traffic()).json.clients.entries
    const { rows } = await tailOf(port, { client, path: '/orders/:number' }, async () => {
      await send('192.0.2.9', '/orders/2')
      await send('192.0.2.7', '/health')
      await send('192.0.2.7', '/orders/17')
    })
    const shown = { clients: ['ip=192.0.2.7'], path: '/orders/17', policies: ['api'] }
    for (const row of rows) expect(row).toMatchObject(shown)
  })

  test('every refusal of a policy is one filter', async () => {
    const { send, port } = await served(await storeOf())
    const { rows } = await tailOf(port, { policy: 'api', reason: 'refused' }, async () => {
      await send('192.0.2.9', '/login')
      await send('192.0.2.7', '/orders/17')
    })
    for (const row of rows) expect(row).toMatchObject({ policies: ['api'], reason: 'limited' })
  })

  test('a process shows at most 50 decisions a second, and the share that this is', async () => {
    const store = await storeOf()
    const { port } = await served(store)
    const mail = createLimiter({ name: 'mail', store, limit: 1_000_000, window: '1h' })
    const { rows, share, decisions } = await tailOf(
      port,
      { policy: 'mail' },
      () => Promise.all(Array.from({ length: 400 }, (_, n) => mail.consume(`user ${n}`))),
      true,
    )
    const ofSeconds = new Map<number, number>()
    for (const { at } of rows as never as { at: number }[]) {
      ofSeconds.set(Math.floor(at / 1000), (ofSeconds.get(Math.floor(at / 1000)) ?? 0) + 1)
    }
    for (const count of ofSeconds.values()) expect(count).toBeLessThanOrEqual(50)
    expect(share).toBeLessThan(1)
    expect(decisions).toBeGreaterThan(50)
  })
})

test('while no console shows decisions, none are sampled; what is written ends within seconds', async () => {
  const prefix = `${randomUUID()}:`
  const { send, port } = await served(await storeOn(prefix))
  const tails = async () => ((await redis.call('KEYS', `${prefix}v1:{console}:tail:*`)) as string[]) ?? []
  await send('192.0.2.7', '/')
  await new Promise((resolve) => setTimeout(resolve, 2500))
  expect(await tails()).toEqual([])
  await ask(port, '/sluice/api/tail', { headers: withBody(port), body: {} })
  await until('the process writes', async () => (await tails()).length > 1)
  for (const key of await tails()) expect(Number(await redis.call('PTTL', key))).toBeLessThanOrEqual(10_000)
})
