import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { policies } from '@sluice/policies'
import { afterAll, expect, test } from 'vitest'
import { sluice } from './support.js'

const folder = mkdtempSync(join(tmpdir(), 'explain-'))
const file = join(folder, 'policies.yaml')
afterAll(() => rmSync(folder, { recursive: true }))
writeFileSync(
  file,
  `version: 1
policies:
  all: { key: account, limits: [{ limit: 100, window: 1m }] }
  login: { match: { methods: [POST], paths: [/login] }, limits: [{ limit: 5, window: 15m }] }
  beta: { match: { headers: { x-beta: true } }, limits: [{ limit: 1, window: 1s }] }
  quota: { match: { paths: [/quota] }, limits: [{ algorithm: fixedWindow, limit: 9, window: month, timeZone: Asia/Tokyo }] }
  plan: { tier: plan, tiers: { free: [{ limit: 1, window: 1m }], paid: [{ limit: 9, window: 1m }] } }
overrides:
  - { policy: all, key: { account: ann }, limits: [{ limit: 500 }] }
`,
)

test('explain lists each policy with its tier and override, or why it does not apply', async () => {
  const { code, stdout } = await sluice([
    'explain',
    file,
    '--path',
    '/Login/',
    '--key',
    'account=ann',
    '--tier',
    'paid',
  ])
  expect(code).toBe(0)
  expect(stdout).toBe(
    `+ all (overrides[0])
    all: 500 per 60000 ms, slidingLog
- login: does not apply (method)
- beta: does not apply (header x-beta)
- quota: does not apply (path)
+ plan (tier paid)
    plan: 9 per 60000 ms, slidingLog
`,
  )
})

test('explain takes headers and the method into account', async () => {
  const args = ['--path', '/login', '--method', 'POST', '--header', 'X-Beta: 1', '--tier', 'free', '--json']
  const { stdout } = await sluice(['explain', file, ...args])
  expect(JSON.parse(stdout)).toMatchObject([
    { policy: 'all', applies: true, limits: [{ limit: 100 }] },
    { policy: 'login', applies: true },
    { policy: 'beta', applies: true },
    { policy: 'quota', applies: false },
    { policy: 'plan', applies: true, tier: 'free' },
  ])
})

test('explain reports an unknown tier', async () => {
  const { stdout } = await sluice(['explain', file, '--path', '/'])
  expect(stdout).toContain('- plan: does not apply (policy "plan": tier: expected "free" or "paid", got "")')
})

test('explain normalises spellings, hosts and queries like the limiter', async () => {
  const hosts = join(folder, 'hosts.yaml')
  writeFileSync(
    hosts,
    'version: 1\npolicies:\n  api: { match: { hosts: ["*.example.com"], paths: [/api/search] }, limits: [{ limit: 1, window: 1s }] }\n',
  )
  const why = async (path: string, host: string) => {
    const { stdout } = await sluice(['explain', hosts, '--path', path, '--header', `Host: ${host}`, '--json'])
    return JSON.parse(stdout)[0].why
  }
  expect(await why('/API//%73earch/?q=1', 'a.example.com:8080')).toBeUndefined()
  expect(await why('https://a.example.com/api/search?q=1', 'a.example.com')).toBeUndefined()
  expect(await why('/api/search', 'example.com')).toBe('host')
  expect(await why('/api/searching', 'a.example.com')).toBe('path')
})

test.each([
  [['--ip', '999.1.1.1'], /ip: expected an address such as 192\.0\.2\.7, got "999\.1\.1\.1"/],
  [['--ip', '192.0.2.0/24'], /ip: expected an address/],
  [['--method', 'GE T'], /method: expected a method in upper case, such as GET, got "GE T"/],
  [['--method', 'get'], /method: expected a method in upper case/],
  [['--header', 'x y: 1'], /headers: expected names of headers, got "x y"/],
  [['--key', 'acount=ann'], /--key: expected a kind that the document names, account, got "acount"/],
  [['--key', '__proto__=ann'], /--key: expected a kind that the document names, account, got "__proto__"/],
])('explain rejects %j, which would explain another request', async (args, message) => {
  const { code, stdout, stderr } = await sluice(['explain', file, ...args])
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
  expect(stderr).toMatch(message)
})

test('explain accepts addresses of both families, and rejects others in code, too', async () => {
  for (const ip of ['192.0.2.7', '2001:db8::1', '::ffff:192.0.2.7']) {
    expect((await sluice(['explain', file, '--ip', ip])).code).toBe(0)
  }
  const loaded = await policies.from({
    object: { version: 1, policies: { api: { limits: [{ limit: 1, window: '1m' }] } } },
  })
  await expect(loaded.explain({ path: '/', ip: '999.1.1.1' })).rejects.toThrow('explain: ip: expected an address')
  await expect(loaded.explain({ path: '/', method: 'get' })).rejects.toThrow('explain: method: expected')
})

test('explain rejects --tier if no policy has tiers, and --key if no policy names one', async () => {
  const plain = join(folder, 'plain.yaml')
  writeFileSync(plain, 'version: 1\npolicies:\n  api: { limits: [{ limit: 1, window: 1s }] }\n')
  expect((await sluice(['explain', plain, '--tier', 'paid'])).stderr).toContain('--tier: expected none')
  expect((await sluice(['explain', plain, '--key', 'user=42'])).stderr).toContain('--key: expected none')
})

test('explain names the calendar of a window', async () => {
  const { stdout } = await sluice(['explain', file, '--path', '/quota', '--tier', 'free'])
  expect(stdout).toContain('    quota: 9 per month, fixedWindow\n')
})
