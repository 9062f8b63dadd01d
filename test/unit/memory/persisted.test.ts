// Runs alone: some warnings come once in a process.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter, memoryStore } from '@sluice/core'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

let folder: string
let file: string
let now: number
let warned: string[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-persist-'))
  file = join(folder, 'blocks.ndjson')
  now = 1_000_000
  warned = []
  vi.spyOn(process, 'emitWarning').mockImplementation((message) => void warned.push(String(message)))
})
afterEach(() => vi.restoreAllMocks())

/** A process, from its start to its end. */
function start(maxBytes = 1_000_000) {
  const store = memoryStore({ clock: () => now, persist: file, maxBytes })
  const ban = { after: 1, within: '1h', for: ['1h'] } as const
  return {
    store,
    limiter: createLimiter({ name: 'api', store, limit: 5, window: '1m' }),
    banning: createLimiter({ name: 'banning', store, limit: 1, window: '1h', ban }),
  }
}

test('persisted blocks and bans hold in the next process, until they end', async () => {
  const first = start()
  await first.limiter.block('ann', { for: '1h', reason: 'spam' })
  await first.limiter.block('bob', { for: '1h' })
  await first.limiter.unblock('bob')
  for (let n = 0; n < 2; n++) await first.banning.consume('eve')
  await first.store.close()
  now += 1000
  const next = start()
  expect((await next.limiter.consume('ann')).block).toEqual({ reason: 'spam', remainingMs: 3_599_000 })
  expect((await next.limiter.consume('bob')).allowed).toBe(true)
  expect((await next.banning.consume('eve')).ban).toMatchObject({ rung: 1, until: now - 1000 + 3_600_000 })
  now += 3_600_000
  expect((await next.limiter.consume('ann')).allowed).toBe(true)
  await next.store.close()
  expect(readdirSync(folder)).toEqual(['blocks.ndjson'])
  expect(warned).toEqual([])
})

test("persisting does not write through another user's link, nor keep another user's file mode", async () => {
  const victim = join(folder, 'victim')
  writeFileSync(victim, 'precious')
  symlinkSync(victim, `${file}.${process.pid}.tmp`)
  const first = start()
  await first.limiter.block('ann', { for: '1h' })
  await first.store.close()
  expect(readFileSync(victim, 'utf8')).toBe('precious')
  expect(lstatSync(file).isFile()).toBe(true)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  // The mode of the file itself is corrected, too.
  chmodSync(file, 0o666)
  const second = start()
  await second.limiter.block('bob', { for: '1h' })
  await second.store.close()
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(warned).toEqual([])
})

test('temporary files of ended processes are removed at the start, and nothing else', async () => {
  const { pid: ended } = spawnSync(process.execPath, ['-e', ''])
  const leftOver = [`${ended}.0123456789abcdef`, `${process.pid}.fedcba9876543210`].map((name) => `${file}.${name}.tmp`)
  const others = [`${file}.${process.ppid}.0123456789abcdef.tmp`, `${file}.tmp`, `${file}.bak`, `${file}.1.tmp`]
  for (const path of [...leftOver, ...others]) writeFileSync(path, '')
  await start().store.close()
  expect(
    readdirSync(folder)
      .map((name) => join(folder, name))
      .sort(),
  ).toEqual([...others].sort())
})

test('a file that cannot be replaced leaves no temporary file beside it', async () => {
  const { store, limiter } = start()
  await limiter.block('ann', { for: '1h' })
  mkdirSync(join(file, 'in the way'), { recursive: true })
  await store.close()
  expect(readdirSync(folder)).toEqual(['blocks.ndjson'])
  expect(warned).toHaveLength(1)
})

test('a ban keeps its rung in the next process: the next ban is longer', async () => {
  const start = () => {
    const store = memoryStore({ clock: () => now, persist: file })
    const ban = { after: 1, within: '1m', for: ['1m', '1h', '1d'], forgetAfter: '2d' } as const
    return { store, banning: createLimiter({ name: 'api', store, limit: 1, window: '365d', ban }) }
  }
  const first = start()
  for (let n = 0; n < 2; n++) await first.banning.consume('eve')
  await first.store.close()
  const next = start()
  now += 60_000
  await next.banning.consume('eve')
  expect((await next.banning.consume('eve')).ban?.rung).toBe(2)
  await next.store.close()
})

test('a permanent block is permanent in the next process, too', async () => {
  const first = start()
  await first.limiter.block('ann', { for: Infinity })
  await first.store.close()
  now += 99 * 365 * 86_400_000
  expect((await start().limiter.consume('ann')).block).toEqual({ reason: '', remainingMs: Infinity })
  expect(warned).toEqual([])
})

test('warnings of stores can be silenced by code; codes of limiters are rejected', () => {
  writeFileSync(file, 'hello')
  const warnings = { SLUICE_PERSIST_FAILED: false, SLUICE_EVICTION: false }
  memoryStore({ persist: file, warnings })
  expect(warned).toEqual([])
  expect(() => memoryStore({ warnings: { SLUICE_ONE_CLIENT: false } as never })).toThrow(
    'memoryStore: warnings: "SLUICE_ONE_CLIENT": unknown code: it is emitted elsewhere',
  )
})

test.each([
  ['of another format', 'hello\n', 'line 1: expected'],
  ['cut off', '{"sluice":"blocks","version":1}\n{"kind":"key","val', 'line 2: expected a whole line'],
  ['with a malformed line', '{"sluice":"blocks","version":1}\n{"kind":"key"}\n', 'line 2: '],
])('a damaged file (%s) causes a warning, is put aside, and a new one is begun', async (_, text, message) => {
  writeFileSync(file, text)
  const { store, limiter } = start()
  expect(warned).toHaveLength(1)
  expect(warned[0]).toContain(message)
  expect(readFileSync(`${file}.damaged`, 'utf8')).toBe(text)
  await limiter.block('ann', { for: '1h' })
  await store.close()
  expect((await start().limiter.consume('ann')).reason).toBe('blocked')
})

test('blocks beyond maxBytes are left out at the start, and the process starts all the same', async () => {
  const first = start(100_000_000)
  for (let n = 0; n < 5000; n++) await first.store.blocks.add({ user: `u${n}` }, { for: '1h', reason: 'x'.repeat(100) })
  await first.store.close()
  const next = start(1_000_000)
  expect(next.store.blocks.known).toBeGreaterThan(1000)
  expect(next.store.blocks.known).toBeLessThan(5000)
  await next.store.close()
})

test('an unusable path is rejected, and a file that cannot be written causes one warning', async () => {
  expect(() => memoryStore({ persist: '' })).toThrow('memoryStore: persist: expected the path of a file')
  expect(() => memoryStore({ persist: folder })).toThrow('memoryStore: persist: EISDIR')
  const store = memoryStore({ persist: join(folder, 'no', 'folder') })
  await store.blocks.add({ user: 'ann' }, { for: '1h' })
  await store.close()
  expect(warned).toEqual([expect.stringContaining('no such file or directory')])
})
test('persisted lists hold in the next process, until their entries end', async () => {
  const first = start()
  await first.store.list('vip').add({ key: 'ann' }, { reason: 'staff' })
  await first.store.list('vip').add({ key: 'bob' }, { expiresAt: now + 5000 })
  await first.store.list('vip').add({ ip: '192.0.2.3-192.0.2.9' })
  await first.store.close()
  now += 5000
  const next = start()
  const { entries } = await next.store.list('vip').list()
  expect(entries.map(({ value, reason }) => [value, reason]).sort()).toEqual([
    ['192.0.2.3-192.0.2.9', ''],
    ['ann', 'staff'],
  ])
  await next.store.close()
})

test('a persisted file contains nothing of a forgotten identity', async () => {
  const { store, limiter } = start()
  await limiter.block('ann', { for: Number.POSITIVE_INFINITY })
  await limiter.block('bob', { for: '1h' })
  await store.list('deny').add({ key: 'ann' })
  await store.forget({ key: 'ann' })
  const text = readFileSync(file, 'utf8')
  expect(text).not.toContain('ann')
  expect(text).toContain('bob')
  await store.close()
})
