import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PoliciesError, policies } from '@sluice/policies'
import { afterAll, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'policies-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** Long enough to be read in a thread of its own. */
const COUNT = 400

/** Each policy has an override. `last`: another override, in the last line. */
function document(limit: number, last = ''): string {
  const all = Array.from({ length: COUNT }, (_, i) => i)
  return [
    'version: 1',
    'policies:',
    ...all.map((i) => `  p${i}: { key: user, match: { paths: [/p${i}] }, limits: [{ limit: ${limit}, window: 1m }] }`),
    '  __proto__: { match: { paths: [/proto] }, limits: [{ limit: 7, window: 1m }] }',
    'overrides:',
    ...all.map((i) => `  - { policy: p${i}, key: { user: "u${i}" }, limits: [{ limit: ${2 * limit} }] }`),
    last,
  ].join('\n')
}

/** Enough time for a busy machine to read it. */
const set = { keys: { user: () => 'ann' }, loadTimeout: 600_000 } as const

function saved(text: string): string {
  const file = join(folder, 'policies.yaml')
  writeFileSync(file, text)
  return file
}

test('a long document comes into force without blocking the event loop', async () => {
  let turns = 0
  let isLoaded = false
  const count = () => {
    turns++
    if (!isLoaded) setImmediate(count)
  }
  setImmediate(count)
  const loaded = await policies.from({ file: saved(document(3)), ...set })
  isLoaded = true
  expect(turns).toBeGreaterThan(20)
  expect(loaded.byName.size).toBe(COUNT + 1)
  expect(loaded.byName.get('__proto__')?.options.limits?.[0]?.limit).toBe(7)
  expect(await loaded.explain({ method: 'GET', path: '/p399' })).toContainEqual(
    expect.objectContaining({ policy: 'p399', applies: true }),
  )
  await loaded.close()
})

test.each([
  ['of form', '  - { policy: p1, key: { user: ann }, limits: [{ limit: ten }] }', 57],
  ['of reference', '  - { policy: p0, key: { user: u0 }, limits: [{ limit: 1 }] }', 24],
])('mistakes %s in a long document have their line and column', async (_, last, column) => {
  const error = await policies.from({ file: saved(document(3, last)), ...set }).then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(error).toBeInstanceOf(PoliciesError)
  const line = 2 + COUNT + 1 + 1 + COUNT + 1
  expect((error as PoliciesError).problems).toEqual([expect.objectContaining({ line, column })])
})

test('after two concurrent reloads the later document is in force', async () => {
  const file = saved(document(3))
  const loaded = await policies.from({ file, ...set })
  writeFileSync(file, document(4))
  const first = loaded.reload()
  writeFileSync(file, document(5))
  await Promise.all([first, loaded.reload()])
  expect(loaded.byName.get('p0')?.options.limits?.[0]?.limit).toBe(5)
  await loaded.close()
})
