import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { ensurePnpm } from '../../scripts/lib/pnpm.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
const json = (path: string) => JSON.parse(readFileSync(join(root, path), 'utf8'))

describe('the pnpm of this project', () => {
  const { packages } = json('scripts/pnpm/package-lock.json')
  const locked = packages['node_modules/pnpm']

  test('pnpm is pinned by its hash, for any registry', () => {
    expect(locked.integrity).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/)
    expect(Object.keys(packages)).toEqual(['', 'node_modules/pnpm'])
    expect(locked.resolved).toBeUndefined()
  })

  test('the pinned pnpm is the one that packageManager names', () => {
    expect(json('package.json').packageManager.split('+')[0]).toBe(`pnpm@${locked.version}`)
    expect(json('scripts/pnpm/package.json').dependencies).toEqual({ pnpm: locked.version })
  })
})

describe('installing what a lock file pins', () => {
  const temp = mkdtempSync(join(tmpdir(), 'sluice-pnpm-'))
  afterAll(() => rmSync(temp, { recursive: true }))
  /** A package with these dependencies, and a lock file that pins nothing. */
  const write = (name: string, dependencies: Readonly<Record<string, string>> = {}) => {
    const from = join(temp, name)
    mkdirSync(from)
    const lock = { name: 'pinned', lockfileVersion: 3, packages: { '': { name: 'pinned' } } }
    writeFileSync(join(from, 'package.json'), JSON.stringify({ name: 'pinned', dependencies }))
    writeFileSync(join(from, 'package-lock.json'), JSON.stringify(lock))
    writeFileSync(join(from, '.npmrc'), '')
    return from
  }

  test('concurrent installations result in one complete folder, and leave nothing else', async () => {
    const complete = write('complete')
    const into = join(temp, 'together')
    const folders = await Promise.all([1, 2, 3].map(() => ensurePnpm({ from: complete, into })))
    expect(new Set(folders).size).toBe(1)
    expect(readdirSync(into)).toHaveLength(1)
    expect(existsSync(join(folders[0] as string, 'package.json'))).toBe(true)
    // The next call uses the same folder.
    expect(await ensurePnpm({ from: complete, into })).toBe(folders[0])
  })

  test('a failed installation leaves nothing that could be mistaken for it', async () => {
    const into = join(temp, 'failed')
    const unpinned = write('unpinned', { pnpm: '1.0.0' })
    await expect(ensurePnpm({ from: unpinned, into })).rejects.toThrow(/npm ci/)
    expect(readdirSync(into)).toEqual([])
  })
})
