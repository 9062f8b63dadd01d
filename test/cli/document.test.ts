import { readFileSync } from 'node:fs'
import { createLimiter, redisStore, slidingLog } from '@sluice/core'
import { Redis } from 'ioredis'
import { afterAll, expect, test } from 'vitest'
import { decided } from '../support/decided.js'
import { startRedis } from '../support/redis-server.js'
import { examined, rulesIn, sluice } from './support.js'

const DOCUMENT = readFileSync(new URL('../../docs/doctor.md', import.meta.url), 'utf8')
const SECURITY = readFileSync(new URL('../../SECURITY.md', import.meta.url), 'utf8')

const block = (language: string, start: string): string => {
  const blocks = [...DOCUMENT.matchAll(/^```(\w+)\n(.*?)^```$/gms)]
  const found = blocks.find(([, name, text]) => name === language && text?.startsWith(start))
  if (!found) throw new Error(`docs/doctor.md has no ${language} that starts with ${start}`)
  return found[2] as string
}

const server = await startRedis({ settings: ['save 3600 1', 'maxmemory 256mb', 'maxmemory-policy allkeys-lru'] })
const client = new Redis(server.url)
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

async function use(): Promise<void> {
  const store = redisStore(client, { timeout: 5000 })
  const limiterOf = (name: string) => createLimiter({ name, store, limits: [slidingLog({ limit: 5, window: '1h' })] })
  const [api, login] = [limiterOf('api'), limiterOf('login')]
  await Promise.all(Array.from({ length: 2000 }, (_, n) => decided(api.consume(`k${n}`))))
  await Promise.all(Array.from({ length: 150 }, (_, n) => decided(login.consume(`k${n}`))))
  for (const key of ['k1', 'k2', 'k3']) await login.block(key, { for: '1h' })
  await store.close()
}

/** Without the parts that differ from run to run: figures, and line breaks. */
const shapeOf = (text: string) =>
  text
    .replace(/\d[\d.,:]*\d|\d/g, '#')
    .replace(/\b([KMG]iB|bytes)\b/g, 'B')
    .replace(/\s+/g, ' ')

test('the sample in docs/doctor.md equals the output of doctor', async () => {
  await use()
  const { stdout } = await sluice(['doctor', '--store-timeout', '60s'], { REDIS_URL: server.url })
  expect(shapeOf(stdout)).toBe(shapeOf(block('text', 'Redis at')))
})

test('the JSON sample in docs/doctor.md has the fields that doctor prints', async () => {
  const { stdout } = await sluice(['doctor', '--json'], { REDIS_URL: server.url })
  const report = JSON.parse(stdout)
  const sample = JSON.parse(block('json', '{'))
  expect(Object.keys(sample)).toEqual(Object.keys(report))
  const finding = report.findings.find(({ check }: { check: string }) => check === 'eviction')
  expect(Object.keys(sample.findings[0])).toEqual(Object.keys(finding))
  expect(Object.keys(sample.findings[0].data)).toEqual(Object.keys(finding.data))
  expect(shapeOf(sample.findings[0].message)).toBe(shapeOf(finding.message))
})

test('the permissions in docs/doctor.md show everything except the settings', async () => {
  const base = rulesIn(SECURITY, /^ACL SETUSER sluice (on [^#\n]*)$/m)
  const more = rulesIn(DOCUMENT, /^ACL SETUSER sluice (.*)$/m)
  await server.call('ACL', 'SETUSER', 'sluice', 'reset', ...base, ...more)
  const report = await examined(server.url.replace('//', '//sluice:choose-a-password@'))
  expect(report.of('visibility').map(({ message }) => message)).toEqual([
    'Not permitted to see: CONFIG GET (persistence).',
  ])
})

test('docs/doctor.md explains every check', async () => {
  const report = await examined(server.url)
  const explained = [...DOCUMENT.matchAll(/^\| `([a-z]+)` \| /gm)].map(([, name]) => name)
  expect(explained).toEqual(expect.arrayContaining(report.findings.map(({ check }) => check)))
})
