import { describe, expect, test } from 'vitest'
import { documentOf, endWithTests, fileOf, gateway, json, refused, serving, THREE } from './support.js'

endWithTests()

const FILE = fileOf(THREE)
const TOKEN = 'a-token-of-the-test'

describe('wrong command lines of serve', () => {
  test.each<[string, string[], Record<string, string>, string]>([
    ['no document', ['--dialect', 'json'], {}, '--document: expected a file, redis:NAME or postgres:NAME'],
    ['no dialect', ['--document', FILE], {}, '--dialect: expected json, nginx, forward-auth, haproxy, got none'],
    ['another dialect', ['--document', FILE, '--dialect', 'envoy'], {}, 'got "envoy"'],
    ['a document in no Redis', ['--document', 'redis:default', '--dialect', 'json'], {}, 'expected REDIS_URL'],
    [
      'no gateway',
      ['--document', FILE, '--dialect', 'nginx'],
      {},
      '--trust-proxy: expected the addresses of your gateways',
    ],
    [
      'a gateway by name',
      ['--document', FILE, '--dialect', 'nginx', '--trust-proxy', 'nginx'],
      {},
      '--trust-proxy: expected addresses',
    ],
    [
      'everyone',
      ['--document', FILE, '--dialect', 'nginx', '--trust-proxy', '0.0.0.0/0'],
      {},
      '--trust-proxy: expected no 0.0.0.0/0',
    ],
    [
      'everyone',
      ['--document', FILE, '--dialect', 'nginx', '--trust-proxy', '0.0.0.0/1', '--trust-proxy', '128.0.0.0/1'],
      {},
      '--trust-proxy: expected your proxies alone, got all addresses',
    ],
    [
      'everyone in IPv6',
      ['--document', FILE, '--dialect', 'nginx', '--trust-proxy', '::/0'],
      {},
      '--trust-proxy: expected no ::/0',
    ],
    [
      'an invalid network',
      ['--document', FILE, '--dialect', 'nginx', '--trust-proxy', '10.0.0.0/33'],
      {},
      '--trust-proxy: expected addresses',
    ],
    [
      'a gateway for json',
      ['--document', FILE, '--dialect', 'json', '--trust-proxy', 'loopback'],
      {},
      '--trust-proxy: expected none',
    ],
    ['keys for a gateway', gateway('nginx', THREE, '--key', 'user'), {}, '--key: expected none'],
    ['a reserved key', ['--document', FILE, '--dialect', 'json', '--key', 'ip'], {}, '--key: expected 1 to 64 letters'],
    [
      'all addresses',
      ['--document', FILE, '--dialect', 'json', '--listen', '0.0.0.0:0'],
      {},
      '--listen: expected a loopback address',
    ],
    [
      'all addresses of IPv6',
      ['--document', FILE, '--dialect', 'json', '--listen', '[::]:0'],
      {},
      '--listen: expected a loopback address',
    ],
    [
      'metrics for everyone',
      ['--document', FILE, '--dialect', 'json', '--metrics', '0.0.0.0:9464'],
      {},
      '--metrics: expected a loopback address, as anyone who reaches it could read the names of policies',
    ],
    [
      'metrics without a port',
      ['--document', FILE, '--dialect', 'json', '--metrics', 'localhost'],
      {},
      '--metrics: expected an address and a port',
    ],
    [
      'offenders without Redis or metrics',
      ['--document', FILE, '--dialect', 'json', '--offenders'],
      {},
      '--offenders: expected Redis',
    ],
    [
      'an invalid grace',
      ['--document', FILE, '--dialect', 'json', '--grace', '5'],
      {},
      '--grace: expected a duration from 0ms to 600s',
    ],
    [
      'an address like loopback',
      ['--document', FILE, '--dialect', 'json', '--listen', '127.0.0.1.example:1'],
      {},
      '--listen: expected an address',
    ],
    [
      'no port',
      ['--document', FILE, '--dialect', 'json', '--listen', '127.0.0.1'],
      {},
      '--listen: expected an address',
    ],
    [
      'a large port',
      ['--document', FILE, '--dialect', 'json', '--listen', '65536'],
      {},
      '--listen: expected an address',
    ],
    [
      'a short token',
      ['--document', FILE, '--dialect', 'json'],
      { SLUICE_TOKEN: 'hunter2' },
      'SLUICE_TOKEN: expected 16 or more',
    ],
    [
      'an empty token',
      ['--document', FILE, '--dialect', 'json'],
      { SLUICE_TOKEN: '' },
      'SLUICE_TOKEN: expected 16 or more',
    ],
    [
      'no file of a token',
      ['--document', FILE, '--dialect', 'json', '--token-file', '/nowhere'],
      {},
      '--token-file: cannot read "/nowhere" (ENOENT)',
    ],
    [
      'a token in the arguments',
      ['--document', FILE, '--dialect', 'json', '--token', TOKEN],
      {},
      'unknown option "--token"',
    ],
    [
      'workers in memory',
      ['--document', FILE, '--dialect', 'json', '--workers', '2'],
      {},
      '--workers: expected 1 without Redis',
    ],
    [
      'a certificate alone',
      ['--document', FILE, '--dialect', 'json', '--tls-cert', FILE],
      {},
      '--tls-cert: expected it and --tls-key',
    ],
    [
      'another mode',
      ['--document', FILE, '--dialect', 'json', '--unavailable', 'open'],
      {},
      '--unavailable: expected local, allow, deny',
    ],
  ])('serve rejects the command line with 2 and a sentence: %s', async (_, args, env, sentence) => {
    const { code, stdout, stderr } = await refused(args, env)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr.split('\n')[0]).toContain(`sluice: `)
    expect(stderr).toContain(sentence)
    expect(stderr).not.toContain('hunter2')
  })
})

describe('documents that a decider cannot use', () => {
  test.each<[string, string, string]>([
    [
      'count',
      'a: { count: { only: failure }, limits: [{ limit: 1, window: 1m }] }',
      'policies.a.count: expected none: a decider does not see what becomes',
    ],
    [
      'strikes by outcome',
      'a: { ban: { after: 2, within: 1m, for: [1m], count: { only: 401 } }, limits: [{ limit: 1, window: 1m }] }',
      'policies.a.ban.count: expected none',
    ],
    [
      'concurrency',
      'a: { limits: [{ algorithm: concurrency, limit: 1 }] }',
      'policies.a.limits[0].algorithm: expected another algorithm',
    ],
    [
      'bytes',
      'a: { limits: [{ algorithm: fixedWindow, limit: 1, window: 1m, unit: content-bytes }] }',
      'policies.a.limits[0].unit: expected requests',
    ],
    [
      'bytes of responses',
      'a: { limits: [{ algorithm: fixedWindow, limit: 1, window: 1m, unit: response-bytes }] }',
      'policies.a.limits[0].unit: expected requests',
    ],
    [
      'a queue',
      'a: { respond: queue, limits: [{ limit: 1, window: 1m }] }',
      'policies.a.respond: expected reject: a decider responds at once, and cannot queue',
    ],
    [
      'a delay',
      'a: { limits: [{ limit: 1, window: 1m, respond: { delay: { max: 1s } } }] }',
      'policies.a.limits[0].respond: expected reject',
    ],
    [
      'a throttle',
      'a: { respond: { throttle: { bytesPerSecond: 1000 } }, limits: [{ limit: 1, window: 1m }] }',
      'cannot throttle',
    ],
    [
      'a tarpit for the banned',
      'a: { ban: { after: 2, within: 1m, for: [1m], respond: tarpit }, limits: [{ limit: 1, window: 1m }] }',
      'policies.a.ban.respond: expected reject',
    ],
    [
      'a leaky queue',
      'a: { limits: [{ algorithm: leakyBucket, capacity: 1, leak: 1, every: 1s, queue: true }] }',
      'policies.a.limits[0].queue: expected false',
    ],
    [
      'an estimate',
      'a: { limits: [{ limit: 10, window: 1m, estimate: cap }] }',
      'policies.a.limits[0].estimate: expected none, as nobody settles an estimate',
    ],
    [
      'a key of code',
      'a: { key: user, limits: [{ limit: 1, window: 1m }] }',
      'policies.a.key: expected ip, path, method, everyone, credentials, header:<name> or cookie:<name>; with --dialect json, --key user',
    ],
    [
      'a part of a key',
      'a: { key: [ip, route], limits: [{ limit: 1, window: 1m }] }',
      'policies.a.key[1]: expected another key',
    ],
    [
      'a tier of code',
      'a: { tier: plan, tiers: { free: [{ limit: 1, window: 1m }] } }',
      'policies.a.tier: expected none of code: a decider has none; with --dialect json, --tier plan',
    ],
    [
      'a cost of code',
      'a: { cost: pages, limits: [{ limit: 1, window: 1m }] }',
      'policies.a.cost: expected none of code',
    ],
  ])('serve rejects a document with %s, with file, line and column', async (_, policy, sentence) => {
    for (const args of [json(documentOf(policy)), gateway('nginx', documentOf(policy))]) {
      const { code, stdout, stderr } = await refused(args)
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(/^\S+\.yaml:3:\d+: policies\.a\./)
      expect(stderr).toContain(sentence)
    }
  })

  test('serve rejects an override that a decider cannot use, and reports all mistakes at once', async () => {
    const text = `${documentOf('a: { count: { only: success }, respond: delay, limits: [{ limit: 1, window: 1m }] }')}
overrides: [{ policy: a, key: { ip: 192.0.2.7 }, limits: [{ algorithm: concurrency, limit: 1 }] }]`
    const { code, stderr } = await refused(json(text))
    expect([code, stderr.trim().split('\n').length]).toEqual([1, 3])
    expect(stderr).toContain('overrides[0].limits[0].algorithm: expected another algorithm')
  })
})

test('with a token the decider can listen on other addresses than loopback', async () => {
  const file = fileOf(`${TOKEN}\n`, 'token')
  const decider = await serving([
    '--document',
    FILE,
    '--dialect',
    'json',
    '--listen',
    '0.0.0.0:0',
    '--token-file',
    file,
  ])
  expect(decider.stdout).toContain('http://0.0.0.0:')
  expect(decider.stdout + decider.stderr).not.toContain(TOKEN)
})

test('the help of serve names every option, with examples, in lines that fit a terminal', async () => {
  const { code, stdout } = await refused(['--help'])
  expect(code).toBe(0)
  for (const option of [
    '--document FILE',
    '--dialect NAME',
    '--trust-proxy NETWORKS',
    '--token-file FILE',
    '--workers N',
    '--grace TIME',
    '--metrics ADDRESS:PORT',
    '--offenders',
    '--postgres-file FILE',
  ]) {
    expect(stdout).toContain(option)
  }
  expect(stdout.match(/^ {2}.*sluice serve --document/gm)).toHaveLength(5)
  for (const line of stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(120)
})
