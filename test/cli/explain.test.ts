import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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
  plan: { tier: plan, tiers: { free: [{ limit: 1, window: 1m }], paid: [{ limit: 9, window: 1m }] } }
overrides:
  - { policy: all, key: { account: ann }, limits: [{ limit: 500 }] }
`,
)

test('each policy is told with its tier and override, and why it does not apply', async () => {
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
+ plan (tier paid)
    plan: 9 per 60000 ms, slidingLog
`,
  )
})

test('headers and the method count', async () => {
  const args = ['--path', '/login', '--method', 'POST', '--header', 'X-Beta: 1', '--tier', 'free', '--json']
  const { stdout } = await sluice(['explain', file, ...args])
  expect(JSON.parse(stdout)).toMatchObject([
    { policy: 'all', applies: true, limits: [{ limit: 100 }] },
    { policy: 'login', applies: true },
    { policy: 'beta', applies: true },
    { policy: 'plan', applies: true, tier: 'free' },
  ])
})

test('a tier that is none is told', async () => {
  const { stdout } = await sluice(['explain', file, '--path', '/'])
  expect(stdout).toContain('- plan: does not apply (policy "plan": tier: expected "free" or "paid", got "")')
})

test('spellings, hosts and a query are read as the limiter reads them', async () => {
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
