import { renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { expect, test } from 'vitest'
import { startRedis } from '../../support/redis-server.js'
import { until } from '../../support/until.js'
import { ask, decide, documentOf, endWithTests, fileOf, json, serving, THREE } from './support.js'

endWithTests()

const ANN = { path: '/', ip: '192.0.2.7' }

test('a changed document comes into force without a restart, unless a decider cannot use it', async () => {
  const file = fileOf(documentOf('all: { limits: [{ limit: 1, window: 1m }] }'))
  const replace = (text: string) => {
    writeFileSync(`${file}.new`, text)
    renameSync(`${file}.new`, file)
  }
  const decider = await serving(['--document', file, '--dialect', 'json', '--listen', '127.0.0.1:0'])
  const limit = async () => (await decide(decider, { ...ANN, cost: 0 })).json.limits[0].limit
  expect(await limit()).toBe(1)
  replace(documentOf('all: { limits: [{ limit: 7, window: 1m }] }'))
  await until('the change is in force', async () => (await limit()) === 7)
  const ready = async () => (await ask(decider, { path: '/readyz' })).json
  expect(await ready()).toMatchObject({ ready: true, document: { current: true } })
  replace(documentOf('all: { count: { only: failure }, limits: [{ limit: 9, window: 1m }] }'))
  await until('the mistake is known', async () => !(await ready()).document.current)
  expect([await limit(), (await ready()).ready]).toEqual([7, true])
  replace(documentOf('all: { limits: [{ limit: 8, window: 1m }] }'))
  await until('the change is in force', async () => (await limit()) === 8)
})

test('probes need no token, and show only health', async () => {
  const decider = await serving(json(THREE), { SLUICE_TOKEN: 'a-token-of-the-test' })
  for (const path of ['/healthz', '/readyz']) {
    const { status, json: health } = await ask(decider, { path })
    expect([status, health]).toEqual([
      200,
      {
        ready: true,
        store: 'available',
        document: { version: expect.stringMatching(/^[0-9a-f]{12}$/), current: true },
      },
    ])
  }
  expect((await decide(decider, ANN)).status).toBe(401)
  expect((await decide(decider, ANN, [['Authorization', 'Bearer another-token-here']])).status).toBe(401)
  expect((await decide(decider, ANN, [['Authorization', 'Bearer a-token-of-the-test']])).json.allowed).toBe(true)
})

test('on a stop the decider finishes pending requests, accepts no more, and ends with 0', async () => {
  const decider = await serving(json(THREE))
  const body = JSON.stringify(ANN)
  const socket = connect(decider.port, '127.0.0.1')
  let text = ''
  socket.setEncoding('latin1').on('data', (chunk) => {
    text += chunk
  })
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(
    `POST /v1/decide HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n{`,
  )
  // A request with a response was accepted after that one.
  await decide(decider, { ...ANN, cost: 0 })
  const code = decider.stop()
  await until('the decider accepts no more requests', () =>
    ask(decider, { path: '/healthz' }).then(
      () => false,
      () => true,
    ),
  )
  socket.write(body.slice(1))
  await closed
  expect(text).toMatch(/^HTTP\/1\.1 200 /)
  expect(text).toMatch(/^Connection: close\r$/im)
  expect(await code).toBe(0)
})

test('a client that never ends its request does not keep the decider from ending', async () => {
  const decider = await serving(json(THREE, '--drain', '50ms'))
  const socket = connect(decider.port, '127.0.0.1', () => socket.write('POST /v1/decide HTTP/1.1\r\nHost: a\r\n'))
  socket.on('error', () => {})
  await decide(decider, ANN)
  expect(await decider.stop()).toBe(0)
  socket.destroy()
})

test('on Redis two deciders count together; during an outage each decides alone, reports it, and recovers', async () => {
  const server = await startRedis()
  try {
    const env = { REDIS_URL: server.url }
    const [one, two] = [await serving(json(THREE), env), await serving(json(THREE), env)]
    expect(one.stdout).toContain(`in Redis at 127.0.0.1:${server.port}`)
    const statuses: [number, string][] = []
    for (const decider of [one, two, one, two]) {
      const { status, decidedBy } = (await decide(decider, ANN)).json
      statuses.push([status, decidedBy])
    }
    expect(statuses).toEqual([
      [200, 'store'],
      [200, 'store'],
      [200, 'store'],
      [429, 'store'],
    ])
    await server.stop()
    const bob = { path: '/', ip: '192.0.2.8' }
    await until(
      'the decider decides alone',
      async () => (await decide(one, { ...bob, cost: 0 })).json.decidedBy === 'process',
    )
    const alone = (await decide(one, bob)).json
    expect(alone).toMatchObject({ allowed: true, decidedBy: 'process' })
    // The counts of this process are not the quota.
    expect(alone.headers.RateLimit).toBeUndefined()
    expect((await ask(one, { path: '/readyz' })).json).toMatchObject({ ready: true, store: 'unavailable' })
    await server.restart()
    await until(
      'the decider uses Redis again',
      async () => (await decide(one, { ...bob, cost: 0 })).json.decidedBy === 'store',
    )
    await until('the probe shows it', async () => (await ask(one, { path: '/readyz' })).json.store === 'available')
  } finally {
    await server.stop()
  }
})

test('without Redis at the start the decider serves, and refuses with --unavailable deny', async () => {
  const server = await startRedis()
  await server.stop()
  const decider = await serving(json(THREE, '--unavailable', 'deny'), { REDIS_URL: server.url })
  try {
    expect(decider.stderr).toContain('nothing listens there (ECONNREFUSED)')
    expect((await decide(decider, ANN)).json).toMatchObject({
      allowed: false,
      status: 503,
      reason: 'unavailable',
      decidedBy: 'process',
    })
    await server.restart()
    await until('the decider uses Redis', async () => (await decide(decider, ANN)).json.decidedBy === 'store')
  } finally {
    await server.stop()
  }
})

test('a document applied to Redis is served, and its next version, too', async () => {
  const server = await startRedis()
  const { run } = await import('@sluice/cli')
  const output = { write: () => {} }
  const apply = (text: string) =>
    run(['apply', fileOf(text), '--yes'], {
      env: { REDIS_URL: server.url },
      stdout: output,
      stderr: output,
      version: '0',
    })
  try {
    expect(await apply(documentOf('all: { limits: [{ limit: 1, window: 1m }] }'))).toBe(0)
    const decider = await serving(['--document', 'redis:', '--dialect', 'json', '--listen', '127.0.0.1:0'], {
      REDIS_URL: server.url,
    })
    const limit = async () => (await decide(decider, { ...ANN, cost: 0 })).json.limits[0].limit
    expect(await limit()).toBe(1)
    expect(await apply(documentOf('all: { limits: [{ limit: 5, window: 1m }] }'))).toBe(0)
    await until('the change is in force', async () => (await limit()) === 5)
  } finally {
    await server.stop()
  }
})
