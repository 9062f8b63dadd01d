// Release: loads thousands of overrides beside requests.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, rateLimit } from '@sluice/express'
import { policies } from '@sluice/policies'
import express from 'express'
import { afterAll, expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'
import { until } from '../support/until.js'

const POLICIES = byEffort({ usual: 200, full: 1000 })
const OVERRIDES = 10 * POLICIES
/** It takes seconds on an idle machine; a busy one may have a tenth of a processor for it. */
const LONGEST_MS = 240_000
const folder = mkdtempSync(join(tmpdir(), 'sluice-whole-'))
afterAll(() => rmSync(folder, { recursive: true }))
const FILE = join(folder, 'policies.yaml')

/** Two policies match every request, the first and the last of the document: in each version their limits are equal. */
function documentOf(limit: number): string {
  const limits = `limits: [{ limit: ${limit}, window: 1m }]`
  const lines = ['version: 1', 'policies:', `  first: { ${limits} }`]
  for (let i = 2; i < POLICIES; i++) lines.push(`  p${i}: { key: user, match: { paths: [/p${i}/:id] }, ${limits} }`)
  lines.push(`  last: { ${limits} }`, 'overrides:')
  for (let i = 0; i < OVERRIDES; i++) {
    lines.push(`  - { policy: p${2 + (i % (POLICIES - 2))}, key: { user: u${i} }, limits: [{ limit: ${limit + i} }] }`)
  }
  return `${lines.join('\n')}\n`
}

function save(limit: number): void {
  writeFileSync(`${FILE}.new`, documentOf(limit))
  renameSync(`${FILE}.new`, FILE)
}

test('loading a thousand policies with ten thousand overrides fails no request, and no request sees half of them', {
  timeout: 3 * LONGEST_MS,
}, async () => {
  save(100_001)
  const loaded = await policies.from({
    file: FILE,
    keys: { user: (request) => request.get('x-user') },
    loadTimeout: LONGEST_MS,
  })
  const app = express()
  app.use(rateLimit({ policies: loaded, store: memoryStore() }))
  app.get('/{*path}', (_req, res) => void res.send('ok'))
  const server = app.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const seen = new Map<string, number>()
  let isOver = false
  const send = async (user: number) => {
    while (!isOver) {
      const response = await fetch(`${url}/elsewhere`, { headers: { 'x-user': `u${user}` } })
      const quotas = [...(response.headers.get('ratelimit-policy') ?? '').matchAll(/"(first|last)";q=(\d+)/g)]
      const what = `${response.status} ${quotas.map(([, name, quota]) => `${name} ${quota}`).join(', ')}`
      seen.set(what, (seen.get(what) ?? 0) + 1)
      await response.text()
    }
  }
  const sending = Array.from({ length: 4 }, (_, user) => send(user))
  for (const limit of [100_002, 100_003]) {
    save(limit)
    const version = `200 first ${limit}, last ${limit}`
    await until('the version is in force', () => (seen.get(version) ?? 0) > 10, { withinMs: LONGEST_MS })
  }
  isOver = true
  await Promise.all(sending)
  expect([...seen.keys()].sort()).toEqual([1, 2, 3].map((i) => `200 first 10000${i}, last 10000${i}`))
  const explained = await loaded.explain({ path: '/p5/7', request: { get: () => 'u3' } })
  expect(explained.find(({ policy }) => policy === 'p5')).toMatchObject({ applies: true, override: 3 })
  expect(loaded.byName.size).toBe(POLICIES)
  await loaded.close()
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
})
