// Release: runs clusters.
import { createLimiter, redisStore } from '@sluice/core'
import { Cluster, Redis } from 'ioredis'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type RedisCluster, startCluster, startWiredMaster } from '../support/redis-cluster.js'
import { type RedisServer, startRedis } from '../support/redis-server.js'
import { sluice } from './support.js'

let server: RedisServer
let cluster: RedisCluster
beforeAll(async () => {
  server = await startRedis()
  cluster = await startCluster()
  return () => Promise.all([server.stop(), cluster.stop()])
})

describe.each(['one Redis', 'a cluster'])('on %s', (kind) => {
  const port = () => (kind === 'one Redis' ? server : (cluster.masters[0] as RedisServer)).port
  const url = () => `redis://127.0.0.1:${port()}`
  let prefix: string
  let run = 0
  beforeEach(() => {
    prefix = `t${++run}:`
  })
  const command = (...args: string[]) => sluice([...args, '--prefix', prefix], { REDIS_URL: url() })

  test('a blocked identity is refused and listed, and admitted after unblock', async () => {
    const client = kind === 'one Redis' ? new Redis(url()) : new Cluster([{ host: '127.0.0.1', port: port() }])
    const store = redisStore(client, { prefix, timeout: 10_000 })
    const limiter = createLimiter({ name: 'mail', store, limit: 10, window: '1h' })
    try {
      const blocked = await command('block', 'key=ann', '--for', '1d', '--policy', 'mail', '--reason', 'spam')
      expect(blocked).toMatchObject({ code: 0, stderr: '' })
      expect(blocked.stdout).toMatch(
        /^identity +policy +until +times +rung +reason\nkey=ann +mail +20.*Z +1 +– +spam\n$/,
      )
      expect(await limiter.consume('ann')).toMatchObject({ allowed: false, reason: 'blocked' })

      const listed = await command('blocks', '--json')
      expect(listed).toMatchObject({ code: 0, stderr: '' })
      expect(JSON.parse(listed.stdout)).toEqual([
        expect.objectContaining({ policy: 'mail', kind: 'key', value: 'ann', reason: 'spam', times: 1 }),
      ])
      expect((await command('bans')).stdout).toBe('no identity is banned\n')

      const unconfirmed = await command('unblock', 'key=ann', '--policy', 'mail')
      expect(unconfirmed.code).toBe(2)
      expect(unconfirmed.stderr).toContain('there is no terminal to ask on: --yes ends it')
      expect(await command('unblock', 'key=ann', '--policy', 'mail', '--yes')).toMatchObject({ code: 0, stderr: '' })
      // The deny cache repeats the refusal for up to a second.
      await expect.poll(() => limiter.consume('ann')).toMatchObject({ allowed: true })
    } finally {
      await store.close()
      client.disconnect()
    }
  })
})

test('a command waits for a cluster whose replies are late at first', async () => {
  const { wire, stop } = await startWiredMaster()
  wire.toClient.pass(1200)
  const timer = setTimeout(() => wire.toClient.pass(), 5000)
  try {
    const outcome = await sluice(['blocks'], { REDIS_URL: `redis://127.0.0.1:${wire.port}` })
    expect(outcome).toEqual({ code: 0, stdout: 'no identity is blocked\n', stderr: '' })
  } finally {
    clearTimeout(timer)
    await stop()
  }
})

const command = (...args: string[]) => sluice([...args, '--prefix', 'here:'], { REDIS_URL: server.url })

test('block accepts networks, and blocks --starts filters by their start', async () => {
  await command('block', 'ip=192.0.2.0/24', '--for', '1h')
  await command('block', 'ip=198.51.100.7', '--for', '1h')
  const { stdout } = await command('blocks', '--kind', 'ip', '--starts', '192.')
  expect(stdout).toContain('ip=192.0.2.0/24  all')
  expect(stdout).not.toContain('198')
  const few = await command('blocks', '--max', '1')
  expect(few.stdout.split('\n')).toHaveLength(3)
  expect(few.stderr).toContain('there may be more than these 1')
})

test('unblock of an identity without a block fails and names --policy', async () => {
  expect(await command('unblock', 'user=carl', '--yes')).toEqual({
    code: 1,
    stdout: '',
    stderr: 'sluice: user=carl has no block for all policies: --policy NAME ends that of one\n',
  })
})

test.each([
  [['block', 'ann', '--for', '1h'], /expected KIND=VALUE/],
  [['block', 'ip=nonsense', '--for', '1h'], /expected an address/],
  [['block', 'ip=192.0.2.7'], /--for: expected a duration/],
  [['block', 'ip=192.0.2.7', '--for', 'soon'], /for: expected/],
  [['block', 'header:x-api-key=s3cret', '--for', '1h'], /process lists/],
  [['blocks', '--max', '0'], /--max: expected/],
])('wrong arguments are rejected with a sentence: %j', async (args, message) => {
  const { code, stdout, stderr } = await command(...args)
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(message)
  expect(stderr).not.toContain('s3cret')
})

test('without Redis the error names the address', async () => {
  const { code, stderr } = await sluice(['blocks'], { REDIS_URL: 'redis://127.0.0.1:1' })
  expect(code).toBe(2)
  expect(stderr).toContain('127.0.0.1:1')
})
