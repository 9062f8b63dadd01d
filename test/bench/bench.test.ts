import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../../scripts/lib/run.js'
import { ensureBuilt } from '../support/built-core.js'

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const bench = fileURLToPath(new URL('../../bench/', import.meta.url))
const names = readdirSync(join(bench, 'measures')).map((file) => file.replace(/\.js$/, ''))

beforeAll(() => ensureBuilt('core', 'express', 'koa', 'fastify'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('every benchmark runs, and leaves its figures and a page that shows them', { timeout: 300_000 }, async () => {
  await run(process.execPath, [join(bench, 'run.js'), '--tiny', '--no-build', '--into', folder], { quiet: true })

  const results = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'))
  const page = readFileSync(join(folder, 'results.md'), 'utf8')
  expect(Object.keys(results).sort()).toEqual(names.sort())
  for (const { title, tables, plots } of Object.values<{ title: string; tables: unknown[]; plots: string[] }>(
    results,
  )) {
    expect(page).toContain(`## ${title}`)
    expect(tables).not.toEqual([])
    for (const plot of plots)
      expect(readFileSync(join(folder, 'plots', `${plot}.svg`), 'utf8')).not.toMatch(/NaN|Infinity/)
  }
})

test('a name there is no benchmark of is refused', async () => {
  const asked = run(process.execPath, [join(bench, 'run.js'), '--no-build', 'speed'], { quiet: true })
  await expect(asked).rejects.toThrow('there is no speed; there are decisions, ')
})
