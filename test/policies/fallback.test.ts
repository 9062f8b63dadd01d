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

describe('a fallback is in force, and why is told,', () => {
  test('for as long as there is no file', async () => {
    const file = newFile()
    const loaded = await from({ file, fallback: document(1) })
    expect([limitOf(loaded), loaded.version]).toEqual([1, 'fallback'])
    expect(loaded.error?.message).toContain('ENOENT')
    writeFileSync(file, text(2))
    await until('the file is in force', () => limitOf(loaded) === 2)
    expect(loaded.error).toBeUndefined()
  })

  test('for as long as the file is wrong', async () => {
    const file = newFile()
    writeFileSync(file, text(2).replace('limits', 'limts'))
    const loaded = await from({ file, fallback: text(1) })
    expect(limitOf(loaded)).toBe(1)
    expect(loaded.error?.message).toMatch(/limts.*did you mean limits/)
    writeFileSync(file, text(2))
    await until('the file is in force', () => limitOf(loaded) === 2)
  })

  test('until a document comes that was too late', async () => {
    let give: (text: string) => void = () => {}
    const late = new Promise<string>((resolve) => {
      give = resolve
    })
    const loaded = await from({ load: () => late, loadTimeout: 20, fallback: document(1) })
    expect(limitOf(loaded)).toBe(1)
    expect(loaded.error?.message).toContain('none came within 20 ms')
    give(text(2))
    await until('it is in force', () => limitOf(loaded) === 2)
  })
})

describe('without a fallback the start fails', () => {
  test('where the document does not come in time', async () => {
    await expect(policies.from({ load: () => new Promise(() => {}), loadTimeout: 20 })).rejects.toThrow(
      'load: expected a document that can be read: none came within 20 ms',
    )
  })

  test('where the fallback itself is wrong', async () => {
    await expect(policies.from({ file: newFile(), fallback: { version: 2 } })).rejects.toThrow(/fallback: .*expected/)
  })

  test.each([0, 1.5, 600_001, '11m', 'soon'])('where the time to load is %s', async (loadTimeout) => {
    await expect(policies.from({ object: document(1), loadTimeout: loadTimeout as number })).rejects.toThrow(
      'policies.from: loadTimeout: expected ',
    )
  })
})
