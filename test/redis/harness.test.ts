// Release: runs clusters. Runs alone: it inspects what its process has started.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { clusterClients, namesOf, sentinelClients, singleClients } from '../support/clients.js'
import { HOLD } from '../support/leash.js'
import { startProxy } from '../support/proxy.js'
import { startCluster } from '../support/redis-cluster.js'
import { startSentinels } from '../support/redis-sentinel.js'
import { startRedis } from '../support/redis-server.js'
import { slotOf } from '../support/slots.js'
import { until } from '../support/until.js'

const toStop: { stop(): Promise<void> }[] = []
afterEach(async () => {
  for (const started of toStop.splice(0).reverse()) await started.stop()
})

async function stoppedAfterTest<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
  const started = await starting
  toStop.push(started)
  return started
}

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a test server starts empty, restarts empty on its port, and ends even when a signal has stopped it', async () => {
  const server = await stoppedAfterTest(startRedis())
  const { pid, port } = server
  await server.call('SET', 'for-ever', 1)
  await server.call('SET', 'for-a-while', 1, 'PX', 5000)
  const lifetimes = await server.lifetimes()
  expect(lifetimes.get('for-ever')).toBe(-1)
  expect(lifetimes.get('for-a-while')).toBeGreaterThan(0)

  await server.restart()
  expect(isAlive(pid)).toBe(false)
  expect(server.port).toBe(port)
  expect(await server.lifetimes()).toHaveProperty('size', 0)

  server.kill('SIGSTOP')
  const second = server.pid
  await server.stop()
  expect(isAlive(second)).toBe(false)
})

test('a test server ends with the process that started it, even when that is killed', async () => {
  const script = `
    const { spawn } = require('node:child_process')
    spawn('/bin/sh', ['-c', process.env.HOLD, 'sh', '/nonexistent', 'sleep', '60'], { stdio: ['pipe', 'inherit', 'inherit'] })
    setInterval(() => {}, 1000)`
  const node = spawn(process.execPath, ['-e', script], { env: { ...process.env, HOLD } })
  const [line] = (await once(node.stdout, 'data')) as [Buffer]
  const pid = Number(line)
  expect(isAlive(pid)).toBe(true)
  node.kill('SIGKILL')
  await until('the server has ended', () => !isAlive(pid))
})

test('a missing redis-server is an error that names the variable to set', async () => {
  const before = process.env.SLUICE_REDIS_SERVER
  process.env.SLUICE_REDIS_SERVER = '/nonexistent/redis-server'
  try {
    await expect(startRedis()).rejects.toThrow('SLUICE_REDIS_SERVER=')
  } finally {
    process.env.SLUICE_REDIS_SERVER = before ?? ''
  }
})

test('every client for a single server writes to it', async () => {
  const server = await stoppedAfterTest(startRedis())
  for (const name of namesOf(singleClients)) {
    const { client, ready, close } = singleClients[name](server.port)
    await ready
    await (client as { set(key: string, value: string): Promise<unknown> }).set(name, '1')
    close()
  }
  expect([...(await server.lifetimes()).keys()].sort()).toEqual(namesOf(singleClients).sort())
})

test('every cluster client writes to all masters of a cluster', async () => {
  const cluster = await stoppedAfterTest(startCluster())
  const keys = [0, 1, 2].map((master) => cluster.identityOn(master))
  for (const key of [...keys, 'a{b}c', '{}x', 'plain']) {
    expect(slotOf(key)).toBe(await cluster.masters[0]?.call('CLUSTER', 'KEYSLOT', key))
  }
  for (const name of namesOf(clusterClients)) {
    const { client, ready, close } = clusterClients[name](cluster)
    await ready
    for (const key of keys) await (client as { set(key: string, value: string): Promise<unknown> }).set(key, name)
    for (const master of cluster.masters) expect(await master.call('DBSIZE')).toBe(1)
    await cluster.flush()
    close()
  }
})

test('every Sentinel client follows a failover', async () => {
  const all = await stoppedAfterTest(startSentinels())
  for (const name of namesOf(sentinelClients)) {
    const { client, ready, close } = sentinelClients[name](all)
    await ready
    expect(await client.set(name, '1')).toBe('OK')
    if (name === 'ioredis 6 by Sentinel') {
      await all.failOver()
      await until('the client writes to the new master', async () => (await client.set(name, '2')) === 'OK')
    }
    close()
  }
})

test('the test proxy delays, holds back, cuts and half-closes connections', async () => {
  const server = await stoppedAfterTest(startRedis())
  const proxy = await stoppedAfterTest(startProxy(server.port))
  const { client, ready, close } = singleClients['ioredis 6'](proxy.port)
  await ready
  await client.set('a', '1')

  proxy.toClient.pass(80)
  const before = performance.now()
  await client.get('a')
  expect(performance.now() - before).toBeGreaterThan(75)
  proxy.toClient.pass()

  proxy.toClient.hold()
  const reply = client.incr('a')
  await until('the server executed the command', async () => (await server.call('GET', 'a')) === '2')
  proxy.toClient.pass()
  expect(await reply).toBe(2)

  proxy.cut()
  await until('the client has reconnected', () => client.ping())

  let isDown = false
  client.once('close', () => {
    isDown = true
  })
  proxy.halfClose()
  await until('the client has noticed the end and reconnected', async () => isDown && (await client.ping()) === 'PONG')
  close()
})
