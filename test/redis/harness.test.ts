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

async function kept<T extends { stop(): Promise<void> }>(starting: Promise<T>): Promise<T> {
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

test('a Redis of the test’s own starts empty, restarts empty on its port, and ends, even when stopped by a signal', async () => {
  const server = await kept(startRedis())
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

test('a Redis ends with the process that started it, even one that was killed', async () => {
  const script = `
    const { spawn } = require('node:child_process')
    spawn('/bin/sh', ['-c', process.env.HOLD, 'sh', '/nonexistent', 'sleep', '60'], { stdio: ['pipe', 'inherit', 'inherit'] })
    setInterval(() => {}, 1000)`
  const node = spawn(process.execPath, ['-e', script], { env: { ...process.env, HOLD } })
  const [line] = (await once(node.stdout, 'data')) as [Buffer]
  const pid = Number(line)
  expect(isAlive(pid)).toBe(true)
  node.kill('SIGKILL')
  await until('the server is gone', () => !isAlive(pid))
})

test('a missing redis-server is an error that says how to get one', async () => {
  const before = process.env.SLUICE_REDIS_SERVER
  process.env.SLUICE_REDIS_SERVER = '/nonexistent/redis-server'
  try {
    await expect(startRedis()).rejects.toThrow('SLUICE_REDIS_SERVER=')
  } finally {
    process.env.SLUICE_REDIS_SERVER = before ?? ''
  }
})

test('every single client speaks to a Redis', async () => {
  const server = await kept(startRedis())
  for (const name of namesOf(singleClients)) {
    const { client, ready, close } = singleClients[name](server.port)
    await ready
    await (client as { set(key: string, value: string): Promise<unknown> }).set(name, '1')
    close()
  }
  expect([...(await server.lifetimes()).keys()].sort()).toEqual(namesOf(singleClients).sort())
})

test('every cluster client speaks to all masters of a cluster', async () => {
  const cluster = await kept(startCluster())
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
  const all = await kept(startSentinels())
  for (const name of namesOf(sentinelClients)) {
    const { client, ready, close } = sentinelClients[name](all)
    await ready
    expect(await client.set(name, '1')).toBe('OK')
    if (name === 'ioredis 6 by Sentinel') {
      await all.failOver()
      await until('the client has followed', async () => (await client.set(name, '2')) === 'OK')
    }
    close()
  }
})

test('a proxy delays, holds back, cuts and half-closes', async () => {
  const server = await kept(startRedis())
  const proxy = await kept(startProxy(server.port))
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
  await until('the server ran it', async () => (await server.call('GET', 'a')) === '2')
  proxy.toClient.pass()
  expect(await reply).toBe(2)

  proxy.cut()
  await until('the client came back', () => client.ping())

  let isDown = false
  client.once('close', () => {
    isDown = true
  })
  proxy.halfClose()
  await until('the client has noticed, and came back', async () => isDown && (await client.ping()) === 'PONG')
  close()
})
