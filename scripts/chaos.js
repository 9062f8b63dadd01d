// Every fault of test/deep/chaos in full, some fifteen minutes: npm run chaos [-- <what> …]
// What: a scenario of test/deep/chaos/scenarios.ts such as failover, or returns, memory or soak. All of them together
// write test/deep/chaos/results.md: measure it on a machine that does nothing else.
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { pnpm } from './lib/pnpm.js'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'
import { ensureRedis } from './programs.js'

const REPORTS = join(root, '.tmp/chaos')
const PAGE = join(root, 'test/deep/chaos/results.md')
/** Files of test/deep/chaos by themselves; all other words are scenarios. */
const PARTS = ['returns', 'memory', 'soak']

await whenStarted(import.meta.url, async () => {
  const wanted = process.argv.slice(2)
  const scenarios = wanted.filter((name) => !PARTS.includes(name))
  const known = scenarioNames()
  const unknown = scenarios.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`there is no ${unknown}; there are ${[...known, ...PARTS].join(', ')}`)
  const files = wanted.filter((name) => PARTS.includes(name))
  if (scenarios.length > 0) files.push('chaos')

  await ensureRedis()
  await pnpm(['exec', 'turbo', 'run', 'build', '--output-logs', 'errors-only'])
  rmSync(REPORTS, { recursive: true, force: true })
  const paths = files.length > 0 ? files.map((name) => `chaos/${name}.test`) : ['chaos/']
  const startedMs = Date.now()
  await run('vitest', ['run', '--root', 'test', '--no-file-parallelism', ...paths], {
    env: { SLUICE_CHAOS: scenarios.join(' ') },
  })
  const page = pageOf(Date.now() - startedMs)
  console.log(page)
  if (wanted.length === 0) writeFileSync(PAGE, page)
})

/** @returns {string[]} */
function scenarioNames() {
  const source = readFileSync(join(root, 'test/deep/chaos/scenarios.ts'), 'utf8')
  return [...source.matchAll(/^ {2}'?([a-z-]+)'?: \{$/gm)].map((found) => String(found[1]))
}

/** @param {string} part @returns {any[]} */
function reportsOf(part) {
  const folder = join(REPORTS, part)
  try {
    return readdirSync(folder).map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')))
  } catch {
    return []
  }
}

/** @param {number} tookMs */
function pageOf(tookMs) {
  const sections = [scenarioTable(), returnTable(), memoryTable(), soakTable()]
  return [
    '# What chaos came to',
    '',
    'Written by `npm run chaos`; [the scenarios](scenarios.ts), [who judges them](judge.ts).',
    '',
    `${new Date().toISOString().slice(0, 10)}, ${machine()}, in ${Math.round(tookMs / 60_000)} minutes.`,
    ...sections.filter((section) => section.length > 0).flatMap((section) => ['', ...section]),
    '',
  ].join('\n')
}

function machine() {
  const server = String(execFileSync(process.env.SLUICE_REDIS_SERVER || 'redis-server', ['--version']))
  const redis = /v=([\d.]+)/.exec(server)?.[1]
  const [cpu] = cpus()
  const clients = ['ioredis', 'redis'].map((name) => {
    const { version } = JSON.parse(readFileSync(join(root, 'test/node_modules', name, 'package.json'), 'utf8'))
    return `${name} ${version}`
  })
  const memory = `${Math.round(totalmem() / 2 ** 30)} GiB`
  return `${cpus().length} × ${cpu?.model.trim()}, ${memory}, Linux ${release()}, Node ${process.versions.node}, Redis ${redis}, ${clients.join(', ')}`
}

function scenarioTable() {
  const reports = reportsOf('scenarios')
  if (reports.length === 0) return []
  const rows = reports.map((of) => [
    of.title,
    of.rounds,
    count(of.requests),
    count(of.byStore),
    count(of.locally),
    count(of.refused),
    of.overByStore,
    of.afterLosses > 0 ? of.afterLosses : '–',
    count(of.ledgerBeyond.reduce((/** @type {number} */ sum, /** @type {number} */ one) => sum + one, 0)),
    ms(of.longestMs),
    ms(Math.max(0, of.beyondDeadlineMs)),
    ms(Math.max(...of.returns)),
    `${of.keysForEver.length} of ${count(of.keysSeen)}`,
  ])
  const [first] = reports
  return [
    '## Under load',
    '',
    `Four processes on the built package, by turns on ioredis and redis (with Sentinel all on ioredis), ask five limiters`,
    'each every 5 ms: an exact log, a bucket, a log with leases, permits, and a ledger that is never full; each',
    `scenario ${first.rounds} times. In all of them: no hang, no unhandled rejection, no error of a request, no process that`,
    'ended, no permit lost; and no process admitted more alone than its share.',
    '',
    ...table(
      [
        'what happens',
        'times',
        'requests',
        'by the store',
        'locally',
        'refused',
        'over-admitted',
        'where data was lost',
        'ledger',
        'longest decision, ms',
        'beyond its deadline, ms',
        'slowest return, ms',
        'keys without expiry',
      ],
      rows,
    ),
    '',
    '- **over-admitted**: units the store admitted beyond a limit in any window, beyond a limit once more for each loss',
    '  of data in it (or step of the clock forward), or of leases up to their life before it. **Where data was lost**: the',
    '  same with no such excuse.',
    '- **ledger**: charges that the store holds less those that clients know of. Above 0: charged, with a result that came',
    '  too late. Below 0: lost with the data; with Sentinel, the writes of the replication lag.',
    '- **longest decision**: a decision has 100 ms, one that waits for leases up to 300; a process that does not get to run',
    '  adds to it. **Beyond its deadline** leaves that out.',
    '- **slowest return**: from the store being back to a decision by it, over all processes and times.',
    "- The clock that steps is one that all processes give to the store (`clock`): Debian's redis-server does not start under its",
    '  libfaketime, which waits for the allocator that waits for it.',
  ]
}

function returnTable() {
  const reports = reportsOf('returns')
  if (reports.length === 0) return []
  return [
    '## Back to shared decisions',
    '',
    'Short outages, up to 600 ms, one after the other; each measured in a process on ioredis and in one on redis.',
    '',
    ...table(
      ['Redis is', 'outages', 'returns within 2 s', 'median, ms', 'slowest, ms'],
      reports.map((of) => [of.how, of.times, `${of.inTime} of ${of.returns}`, ms(of.medianMs), ms(of.worstMs)]),
    ),
  ]
}

function memoryTable() {
  const reports = reportsOf('memory')
  if (reports.length === 0) return []
  return [
    '## Memory, after one-shot identities',
    '',
    'Heap and buffers in MB after a collection: before, at the end, and when all is over that is kept for a time. Who was',
    'limited, or blocked, when it began was so at every look in between; the memory store had room for 20,000.',
    '',
    ...table(
      ['part', 'identities', 'before', 'at the end', 'when all is over', 'seconds'],
      reports.map((of) => [
        of.part,
        count(of.identities),
        mb(of.warmBytes),
        mb(of.fullBytes),
        mb(of.baseBytes),
        Math.round(of.seconds),
      ]),
    ),
  ]
}

function soakTable() {
  return reportsOf('soak').flatMap((of) => [
    '## Load that lasts',
    '',
    `Two processes, ${of.seconds} s, ${count(of.requests)} requests, ${count(of.locally)} of them decided locally;`,
    `${count(of.keysSeen)} keys looked at, each with an expiry. From the second quarter to the last, by their medians:`,
    '',
    ...table(
      ['', 'first, MB', 'last, MB', 'growth, MB'],
      [
        ['heap of the larger process', mb(of.heap.firstBytes), mb(of.heap.lastBytes), mb(of.heap.bytes)],
        ['Redis, `used_memory`', mb(of.data.firstBytes), mb(of.data.lastBytes), mb(of.data.bytes)],
      ],
    ),
  ])
}

/** @param {string[]} head @param {(string | number)[][]} rows */
function table(head, rows) {
  return [head, head.map((_, i) => (i === 0 ? '---' : '---:')), ...rows].map((cells) => `| ${cells.join(' | ')} |`)
}

/** @param {number} number */
function count(number) {
  return number.toLocaleString('en')
}

/** @param {number} number */
function ms(number) {
  return Math.round(number)
}

/** @param {number} bytes */
function mb(bytes) {
  return (bytes / 1e6).toFixed(2)
}
