import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Policies, policies } from '@sluice/policies'
import { afterEach, describe, expect, test } from 'vitest'
import { until } from '../support/until.js'

const folders: string[] = []
const sources: Policies[] = []
afterEach(async () => {
  for (const loaded of sources.splice(0)) await loaded.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true })
})

const document = (limit: number) => ({ version: 1, policies: { all: { limits: [{ limit, window: '1m' }] } } })
const text = (limit: number) => JSON.stringify(document(limit))
const limitOf = (loaded: Policies) => loaded.byName.get('all')?.options.limits?.[0]?.limit

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'policies-'))
  folders.push(folder)
  return join(folder, 'policies.yaml')
}

async function from(options: Parameters<typeof policies.from>[0]): Promise<Policies> {
  const loaded = await policies.from(options)
  sources.push(loaded)
  return loaded
}

describe('a fallback in force', () => {
  test('a fallback is in force until the missing file appears, and error says why', async () => {
    const file = newFile()
    const loaded = await from({ file, fallback: document(1) })
    expect([limitOf(loaded), loaded.version]).toEqual([1, 'fallback'])
    expect(loaded.error?.message).toContain('ENOENT')
    writeFileSync(file, text(2))
    await until('the file is in force', () => limitOf(loaded) === 2)
    expect(loaded.error).toBeUndefined()
  })

  test('a fallback is in force until the invalid file is corrected, and error says why', async () => {
    const file = newFile()
    writeFileSync(file, text(2).replace('limits', 'limts'))
    const loaded = await from({ file, fallback: text(1) })
    expect(limitOf(loaded)).toBe(1)
    expect(loaded.error?.message).toMatch(/limts.*did you mean limits/)
    writeFileSync(file, text(2))
    await until('the file is in force', () => limitOf(loaded) === 2)
  })

  test('a fallback is in force until a late document arrives, and error says why', async () => {
    let give: (text: string) => void = () => {}
    const late = new Promise<string>((resolve) => {
      give = resolve
    })
    const loaded = await from({ load: () => late, loadTimeout: 20, fallback: document(1) })
    expect(limitOf(loaded)).toBe(1)
    expect(loaded.error?.message).toContain('none came within 20 ms')
    give(text(2))
    await until('the document is in force', () => limitOf(loaded) === 2)
  })
})

describe('a start without a usable document', () => {
  test('the start fails if no document arrives within loadTimeout', async () => {
    await expect(policies.from({ load: () => new Promise(() => {}), loadTimeout: 20 })).rejects.toThrow(
      'load: expected a document that can be read: none came within 20 ms',
    )
  })

  test('the start fails if the fallback is invalid', async () => {
    await expect(policies.from({ file: newFile(), fallback: { version: 2 } })).rejects.toThrow(/fallback: .*expected/)
  })

  test.each([0, 1.5, 600_001, '11m', 'soon'])('policies.from rejects a loadTimeout of %s', async (loadTimeout) => {
    await expect(policies.from({ object: document(1), loadTimeout: loadTimeout as number })).rejects.toThrow(
      'policies.from: loadTimeout: expected ',
    )
  })
})
