import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type PoliciesOptions, policies } from '@sluice/policies'
import { afterAll, expect, test } from 'vitest'
import { until } from '../support/until.js'

const folder = mkdtempSync(join(tmpdir(), 'sluice-check-'))
afterAll(() => rmSync(folder, { recursive: true }))

const FILE = join(folder, 'policies.yaml')
const write = (text: string) => {
  writeFileSync(`${FILE}.new`, text)
  renameSync(`${FILE}.new`, FILE)
}
const api = (limit: number) => `version: 1\npolicies:\n  api:\n    limits: [{ limit: ${limit}, window: 1m }]\n`

/** No limit may be above ten. */
const check: PoliciesOptions['check'] = ({ policies: all = {} }) =>
  Object.entries(all).flatMap(([name, policy]) =>
    (policy as { limits: { limit: number }[] }).limits.flatMap(({ limit }, i) =>
      limit > 10
        ? [{ path: ['policies', name, 'limits', i, 'limit'], message: `expected at most 10, got ${limit}` }]
        : [],
    ),
  )

test('a problem reported by check has line and column, and the document does not come into force', async () => {
  write(api(11))
  await expect(policies.from({ file: FILE, check })).rejects.toThrow(
    `${FILE}:4:23: policies.api.limits[0].limit: expected at most 10, got 11`,
  )
})

test('check runs for each later version, and a rejected one leaves the last in force', async () => {
  write(api(1))
  const loaded = await policies.from({ file: FILE, check })
  const { version } = loaded
  write(api(12))
  await until('the mistake is known', () => loaded.error?.message.includes('got 12'))
  expect(loaded.version).toBe(version)
  write(api(2))
  await until('the change is in force', () => loaded.version !== version)
  expect(loaded.error).toBeUndefined()
  await loaded.close()
})

test('check runs for a fallback as well', async () => {
  const fallback = { version: 1, policies: { api: { limits: [{ limit: 13, window: '1m' }] } } }
  const options = { file: join(folder, 'none.yaml'), fallback, check }
  await expect(policies.from(options)).rejects.toThrow('policies.api.limits[0].limit: expected at most 10, got 13')
})

test('policies.from rejects a check that is not a function', async () => {
  await expect(policies.from({ object: {}, check: true as never })).rejects.toThrow(
    'policies.from: check: expected a function',
  )
})
