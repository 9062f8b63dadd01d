import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChild } from '../../bench/lib/child.js'
import { medianInterval } from '../../bench/lib/stats.js'
import { run } from '../../scripts/lib/run.js'
import { ensureBuilt } from '../support/built-core.js'
import { byEffort } from '../support/effort.js'

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const bench = fileURLToPath(new URL('../../bench/', import.meta.url))
const names = readdirSync(join(bench, 'measures')).map((file) => file.replace(/\.js$/, ''))

beforeAll(() => ensureBuilt('core', 'policies', 'express', 'koa', 'fastify', 'cli'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** One in memory and one on Redis; `npm run deep` rehearses all. */
const rehearsed = byEffort({ usual: ['memory-bytes', 'lease'], full: names })

test('benchmarks run, and leave their figures and a page that shows them', async () => {
  const into = ['--tiny', '--no-build', '--into', folder]
  await run(process.execPath, [join(bench, 'run.js'), ...into, ...rehearsed], { quiet: true })

  const results = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'))
  const page = readFileSync(join(folder, 'results.md'), 'utf8')
  expect(Object.keys(results).sort()).toEqual([...rehearsed].sort())
  for (const { title, tables, plots } of Object.values<{ title: string; tables: unknown[]; plots: string[] }>(
    results,
  )) {
    expect(page).toContain(`## ${title}`)
    expect(tables).not.toEqual([])
    for (const plot of plots)
      expect(readFileSync(join(folder, 'plots', `${plot}.svg`), 'utf8')).not.toMatch(/NaN|Infinity/)
  }
})

test.each([
  ['waiters', { count: 20, clients: 3 }, 'exchange', { count: 40 }],
  ['paths', {}, 'decide', { count: 40, spelling: 'odd' }],
])('the player of %s takes the packages of the checkout that it is given', async (name, joined, method, load) => {
  const child = startChild(new URL(`players/${name}.js`, pathToFileURL(bench)))
  try {
    await child.call('join', { build: new URL('..', pathToFileURL(bench)).href, ...joined })
    expect(await child.call(method, load)).toBeGreaterThan(0)
    const elsewhere = { build: pathToFileURL(`${folder}/`).href, ...joined }
    await expect(child.call('join', elsewhere)).rejects.toThrow('Cannot find module')
  } finally {
    await child.end()
  }
})

test('a name there is no benchmark of is refused', async () => {
  const asked = run(process.execPath, [join(bench, 'run.js'), '--no-build', 'speed'], { quiet: true })
  await expect(asked).rejects.toThrow('there is no speed; there are regimes, decisions, ')
})

test.each([
  // Of the published tables of order statistics, for 95 %.
  { count: 5, low: 1, high: 5 },
  { count: 6, low: 1, high: 6 },
  { count: 9, low: 2, high: 8 },
  { count: 15, low: 4, high: 12 },
  { count: 20, low: 6, high: 15 },
])('the median of $count values lies between number $low and number $high', ({ count, low, high }) => {
  const values = Array.from({ length: count }, (_, i) => count - i)
  expect(medianInterval(values)).toEqual({ low, high })
})
