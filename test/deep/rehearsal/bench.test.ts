// Deep: runs every benchmark.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startChild } from '../../../bench/lib/child.js'
import { ending, type Keep } from '../../../bench/lib/ending.js'
import { startCluster, startRedis } from '../../../bench/lib/redis.js'
import { redisRow, type World } from '../../../bench/lib/rows.js'
import { medianInterval } from '../../../bench/lib/stats.js'
import type { WrittenLimit } from '../../../bench/players/redis-policy.js'
import { run } from '../../../scripts/lib/run.js'
import { ensureBuilt } from '../../support/built-core.js'

const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
const bench = fileURLToPath(new URL('../../../bench/', import.meta.url))
const names = readdirSync(join(bench, 'measures')).map((file) => file.replace(/\.js$/, ''))

beforeAll(() => ensureBuilt('core', 'policies', 'express', 'koa', 'fastify', 'console', 'cli'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('benchmarks run, and write their figures and a page that shows them', async () => {
  const into = ['--tiny', '--no-build', '--into', folder]
  await run(process.execPath, [join(bench, 'run.js'), ...into, ...names], { quiet: true })

  const results = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'))
  const page = readFileSync(join(folder, 'results.md'), 'utf8')
  expect(Object.keys(results).sort()).toEqual([...names].sort())
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
])('the player of %s loads the packages of the given checkout', async (name, joined, method, load) => {
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

const few = { inFlight: 2, keys: 10, count: 50 }
const log: WrittenLimit = ['slidingLog', { limit: 5, window: '1h' }]
const many: WrittenLimit = ['slidingWindow', { limit: 10_000_000, window: '1h' }]

test.each([
  redisRow('refuses', {
    limits: [log],
    policy: { ban: { after: 1, within: '1m', for: ['1m'] } },
    refuses: true,
    ...few,
  }),
  redisRow('knows blocks', { limits: [log], blocks: 3, ...few, keys: 100 }),
  redisRow('waits', { limits: [['gcra', { limit: 200, window: '1s', burst: 1 }]], waits: true, ...few }),
  redisRow('in turns', { limits: [many], policy: { consistency: { syncEvery: '20ms' } }, ...few, inTurnsMs: 50 }),
  redisRow('has a cluster', { limits: [many], ...few, onCluster: true }),
])('the CPU time of Node and of Redis is measured: $name', ({ costsUs }) =>
  ending(async (keep) => {
    const costs = await costsUs(keep, worldFor(keep))
    expect(costs).toEqual({ 'Node CPU': expect.any(Number), 'Redis CPU': expect.any(Number) })
    for (const cost of Object.values(costs)) expect(cost).toBeGreaterThan(0)
  }),
)

test('a benchmark row fails if its policy refuses although the row expects room', async () => {
  const measured = ending((keep) => redisRow('full', { limits: [log], ...few, keys: 2 }).costsUs(keep, worldFor(keep)))
  await expect(measured).rejects.toThrow('full: refuses in the end')
})

test('a benchmark row of a policy on Redis loads the packages of the given checkout', async () => {
  const { costsUs } = redisRow('elsewhere', { limits: [log], ...few })
  const measured = ending((keep) => costsUs(keep, { ...worldFor(keep), build: pathToFileURL(`${folder}/`).href }))
  await expect(measured).rejects.toThrow('Cannot find module')
})

function worldFor(keep: Keep): World {
  return {
    build: new URL('..', pathToFileURL(bench)).href,
    player: (name) => new URL(`players/${name}.js`, pathToFileURL(bench)),
    redis: async () => keep(await startRedis()),
    cluster: () => startCluster(keep, 3),
    loader: async () => keep(startChild(new URL('players/http-load.js', pathToFileURL(bench)))),
  }
}

test('two checkouts are compared figure by figure, for the named rows', async () => {
  const here = fileURLToPath(new URL('../../../', import.meta.url))
  const against = [join(bench, 'against.js'), here, '--pairs', '1']
  const output = await run(process.execPath, [...against, 'exact log, 1 in flight'], { quiet: true })
  const figures = [...output.matchAll(/^\| redis: .*? \| (\w+ CPU) \| [\d.]+ \| [\d.]+ \| [\d.]+ /gm)]
  expect(figures.map(([, figure]) => figure)).toEqual(['Node CPU', 'Redis CPU'])
  await expect(run(process.execPath, [...against, 'speed'], { quiet: true })).rejects.toThrow('no row has "speed"')
})

test('an unknown name of a benchmark is rejected', async () => {
  const measured = run(process.execPath, [join(bench, 'run.js'), '--no-build', 'speed'], { quiet: true })
  await expect(measured).rejects.toThrow('there is no speed; there are regimes, decisions, ')
})

test.each([
  // From the published tables of order statistics, for 95 %.
  { count: 5, low: 1, high: 5 },
  { count: 6, low: 1, high: 6 },
  { count: 9, low: 2, high: 8 },
  { count: 15, low: 4, high: 12 },
  { count: 20, low: 6, high: 15 },
])('the median of $count values lies between number $low and number $high', ({ count, low, high }) => {
  const values = Array.from({ length: count }, (_, i) => count - i)
  expect(medianInterval(values)).toEqual({ low, high })
})
