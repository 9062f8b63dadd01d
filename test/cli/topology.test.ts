// Release: runs clusters.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, redisStore } from '@sluice/core'
import { Cluster } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freePort } from '../../scripts/lib/ports.js'
import { CERTIFICATE, PRIVATE_KEY } from '../http/support/certificate.js'
import { listeningClients } from '../support/clients.js'
import { decided } from '../support/decided.js'
import { type RedisCluster, startCluster } from '../support/redis-cluster.js'
import { type RedisSentinels, startSentinels } from '../support/redis-sentinel.js'
import { HOST, type RedisServer, startRedis } from '../support/redis-server.js'
import { until } from '../support/until.js'
import { examined, HEALTHY, rulesIn, sluice } from './support.js'

const SECURITY = readFileSync(new URL('../../SECURITY.md', import.meta.url), 'utf8')

describe('doctor: a cluster', () => {
  let cluster: RedisCluster
  const first = () => cluster.masters[0] as RedisServer
  beforeAll(async () => {
    cluster = await startCluster()
    for (const master of cluster.masters) await master.call('CONFIG', 'SET', 'maxmemory', '100mb')
  })
  afterAll(() => cluster.stop())

  test('doctor examines each master of a cluster, from any of its nodes', async () => {
    const client = new Cluster([{ host: HOST, port: first().port }])
    const store = redisStore(client, { timeout: 5000 })
    const limiter = createLimiter({ name: 'api', store, limit: 5, window: '1h' })
    for (let n = 0; n < 30; n++) await decided(limiter.consume(`k${n}`))
    await store.close()
    client.disconnect()

    for (const { url } of cluster.masters) {
      const report = await examined(url)
      expect(report).toMatchObject({ kind: 'Cluster', code: 1 })
      expect([...report.nodes].sort()).toEqual(cluster.masters.map(({ port }) => `${HOST}:${port}`).sort())
      expect(report.of('cluster').map(({ severity, message }) => [severity, message])).toEqual([
        ['ok', 'All 16,384 slots are served, by 3 masters.'],
        ['warning', expect.stringContaining('No master has a replica')],
      ])
      expect(report.of('permissions').map(({ severity, node }) => [severity, node])).toEqual(
        report.nodes.map((node) => ['ok', node]),
      )
      expect(report.of('keys')[0]?.data).toMatchObject({ keys: 30 })
    }
    const { stdout } = await sluice(['doctor', '--store-timeout', '60s'], { REDIS_URL: first().url })
    expect(stdout).toContain(': Cluster of 3 masters\n')
    expect(stdout.match(/ latency /g)).toHaveLength(1)
    expect(stdout).toContain('well on 2 more)')
  })

  test('a finding of doctor names the masters that it is about', async () => {
    const [, second, third] = cluster.masters as [RedisServer, RedisServer, RedisServer]
    for (const { call } of [second, third].map((master) => ({ call: master.call.bind(master) }))) {
      await call('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    }
    const report = await examined(first().url)
    expect(report.of('eviction').map(({ severity, node }) => [node, severity])).toEqual(
      report.nodes.map((node) => [node, node === `${HOST}:${first().port}` ? 'ok' : 'warning']),
    )
    for (const master of [second, third]) await master.call('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
  })

  test('the cluster permissions of SECURITY.md suffice for doctor', async () => {
    const base = rulesIn(SECURITY, /^ACL SETUSER sluice (on [^#\n]*)$/m)
    const more = rulesIn(SECURITY, /^ACL SETUSER sluice ([^#\n]*?) *# ioredis Cluster$/m)
    for (const master of cluster.masters)
      await master.call('ACL', 'SETUSER', 'sluice', 'reset', ...base, ...more, '+scan', '+memory|usage')
    const url = `redis://sluice:choose-a-password@${HOST}:${first().port}`
    const report = await examined(url)
    expect(report.problems.map(({ check }) => check)).toEqual(['cluster', 'visibility'])
    for (const master of cluster.masters) await master.call('ACL', 'SETUSER', 'sluice', '-cluster')
    const denied = await examined(url)
    expect([denied.code, denied.of('cluster')]).toEqual([
      2,
      [
        expect.objectContaining({
          severity: 'error',
          advice: 'Grant it: ACL SETUSER sluice +cluster|slots +cluster|info',
        }),
      ],
    ])
  })

  test('doctor reports a database number in the URL of a cluster as an error', async () => {
    const report = await examined(`${first().url}/1`)
    expect(report.problems).toEqual([
      expect.objectContaining({ message: expect.stringContaining('has database 0 alone') }),
    ])
  })

  test('doctor reports slots without a master as an error', async () => {
    const [, , third] = cluster.masters as [RedisServer, RedisServer, RedisServer]
    for (const master of cluster.masters) await master.call('CLUSTER', 'DELSLOTS', 16_380, 16_383)
    await until(
      'the cluster knows',
      async () => (await first().fields('CLUSTER', 'INFO')).cluster_slots_assigned === '16382',
    )
    const report = await examined(first().url)
    expect(report.code).toBe(2)
    expect(report.of('cluster')[0]).toMatchObject({
      severity: 'error',
      message: expect.stringMatching(/^2 slots of 16,384 are served by no master \(16380, 16383\)/),
    })
    await third.call('CLUSTER', 'ADDSLOTS', 16_380, 16_383)
    await until('the cluster is complete', async () => (await first().fields('CLUSTER', 'INFO')).cluster_state === 'ok')
  })

  test('doctor reports a master with an unreachable address as an error', async () => {
    const [, second] = cluster.masters as [RedisServer, RedisServer]
    const port = await freePort()
    await second.call('CONFIG', 'SET', 'cluster-announce-port', port)
    await until('the cluster knows', async () =>
      JSON.stringify(await first().call('CLUSTER', 'SLOTS')).includes(String(port)),
    )
    const report = await examined(first().url)
    expect(report.code).toBe(2)
    expect(report.of('cluster')).toContainEqual(
      expect.objectContaining({
        node: `${HOST}:${port}`,
        severity: 'error',
        message: expect.stringMatching(/ECONNREFUSED.*names it as a master/),
        advice: expect.stringContaining('cluster-announce-ip'),
      }),
    )
    await second.call('CONFIG', 'SET', 'cluster-announce-port', 0)
    await until(
      'the cluster knows',
      async () => !JSON.stringify(await first().call('CLUSTER', 'SLOTS')).includes(String(port)),
    )
  })

  test('doctor reports a stopped master as an error', async () => {
    await cluster.masters[2]?.stop()
    const report = await examined(first().url)
    expect(report.code).toBe(2)
    expect(report.nodes).toHaveLength(2)
    expect(report.of('cluster')).toContainEqual(
      expect.objectContaining({ severity: 'error', node: `${HOST}:${cluster.masters[2]?.port}` }),
    )
  })
})

describe('doctor: Sentinel', () => {
  let all: RedisSentinels
  const sentinel = () => all.sentinels[0] as RedisServer
  beforeAll(async () => {
    all = await startSentinels()
    for (const server of all.servers) await server.call('CONFIG', 'SET', 'maxmemory', '100mb')
  })
  afterAll(() => all.stop())

  test('doctor warns of a Sentinel that tells no client of a failover', async () => {
    const report = await examined(sentinel().url)
    expect([report.code, report.problems]).toEqual([
      1,
      [
        expect.objectContaining({
          check: 'sentinel',
          severity: 'warning',
          message: expect.stringMatching(/^No client listens to this Sentinel/),
          advice: expect.stringContaining('failoverDetector: true'),
        }),
      ],
    ])
  })

  test('doctor finds the master by Sentinel and examines it', async () => {
    const { client, close } = listeningClients['ioredis 6 that listens to Sentinel'](all)
    await new Promise((resolve) => client.once('failoverSubscribed', resolve))
    const report = await examined(sentinel().url)
    expect(report).toMatchObject({ kind: 'Sentinel', code: 0, nodes: [`${HOST}:${all.servers[0]?.port}`] })
    expect(report.of('sentinel')).toEqual([
      expect.objectContaining({
        severity: 'ok',
        message: 'Sentinel knows the master of "main": 1 replica, 3 Sentinels.',
      }),
    ])
    expect((await examined(sentinel().url, '--master-name', 'main')).code).toBe(0)
    close()
  })

  test('doctor reports a master name unknown to Sentinel as an error with the known ones', async () => {
    const report = await examined(sentinel().url, '--master-name', 'other')
    expect([report.code, report.problems]).toEqual([
      2,
      [expect.objectContaining({ message: 'Sentinel watches no master named "other", but "main".' })],
    ])
  })

  test('doctor requires --master-name if Sentinel watches several masters', async () => {
    await sentinel().call('SENTINEL', 'MONITOR', 'second', HOST, all.servers[0]?.port as number, 2)
    const { code, stderr } = await sluice(['doctor'], { REDIS_URL: sentinel().url })
    expect(code).toBe(2)
    expect(stderr).toMatch(/Sentinel watches "(main|second)" and "(main|second)": say which one by --master-name/)
    await sentinel().call('SENTINEL', 'REMOVE', 'second')
  })

  test('doctor reports Sentinels without a quorum, and a stopped master, as errors', async () => {
    for (const each of all.sentinels.slice(1)) await each.stop()
    await all.servers[0]?.stop()
    await until('the outage is noticed', async () => {
      const flat = (await sentinel().call('SENTINEL', 'MASTER', all.name)) as string[]
      return flat[flat.indexOf('flags') + 1]?.includes('s_down')
    })
    await until('the missing Sentinels are noticed', () =>
      sentinel()
        .call('SENTINEL', 'CKQUORUM', all.name)
        .then(
          () => false,
          (error: Error) => error.message.startsWith('NOQUORUM'),
        ),
    )
    const report = await examined(sentinel().url)
    expect(report.code).toBe(2)
    expect(report.problems.map(({ message }) => message)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/takes the master of "main" for down/),
        expect.stringMatching(/cannot agree on a failover/),
        expect.stringMatching(/ECONNREFUSED.*names it as the master/),
      ]),
    )
  })
})

describe('doctor: TLS', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-tls-'))
  const cert = join(dir, 'cert.pem')
  const key = join(dir, 'key.pem')
  let server: RedisServer
  let port: number
  beforeAll(async () => {
    writeFileSync(cert, CERTIFICATE)
    writeFileSync(key, PRIVATE_KEY)
    port = await freePort()
    const tls = [`tls-port ${port}`, `tls-cert-file ${cert}`, `tls-key-file ${key}`, `tls-ca-cert-file ${cert}`]
    server = await startRedis({ settings: [...HEALTHY, ...tls, 'tls-auth-clients optional'] })
  })
  afterAll(async () => {
    await server.stop()
    rmSync(dir, { recursive: true })
  })

  test('doctor connects over TLS with a trusted certificate', async () => {
    const report = await examined(`rediss://localhost:${port}`, '--cacert', cert)
    expect(report).toMatchObject({ code: 0, target: `localhost:${port} (TLS)` })
  })

  test('doctor reports an untrusted certificate as an error', async () => {
    const report = await examined(`rediss://localhost:${port}`)
    expect([report.code, report.problems]).toEqual([
      2,
      [
        expect.objectContaining({
          message: expect.stringContaining('trusts'),
          advice: expect.stringContaining('--cacert'),
        }),
      ],
    ])
  })

  test('doctor reports a certificate for another host as an error', async () => {
    const report = await examined(`rediss://${HOST}:${port}`, '--cacert', cert)
    expect(report.problems).toEqual([
      expect.objectContaining({ message: expect.stringContaining('another host name') }),
    ])
  })

  test('doctor sends a client certificate if given, and reports a missing one as an error', async () => {
    await server.call('CONFIG', 'SET', 'tls-auth-clients', 'yes')
    const url = `rediss://localhost:${port}`
    const report = await examined(url, '--cacert', cert)
    expect(report.problems).toEqual([expect.objectContaining({ advice: expect.stringContaining('--cert') })])
    expect((await examined(url, '--cacert', cert, '--cert', cert, '--key', key)).code).toBe(0)
    await server.call('CONFIG', 'SET', 'tls-auth-clients', 'optional')
  })

  test('doctor reports TLS on one side only as an error with the right URL', async () => {
    const plain = await examined(`redis://localhost:${port}`, '--timeout', '5s')
    expect(plain.problems).toEqual([expect.objectContaining({ advice: expect.stringContaining('rediss://') })])
    const tls = await examined(`rediss://localhost:${server.port}`, '--cacert', cert, '--timeout', '1s')
    expect(tls.problems).toEqual([expect.objectContaining({ advice: expect.stringContaining('redis://') })])
  })
})
