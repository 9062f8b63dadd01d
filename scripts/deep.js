// `npm run deep`: all long checks in full, one after the other, some hours: npm run deep [-- <part> …]
// Continues after a failure, and ends with a line for each part.
import { besideBusyLoops } from './lib/busy-loops.js'
import { besidePauses } from './lib/pauses.js'
import { whenStarted } from './lib/run.js'
import { npmRun, takeAll } from './lib/steps.js'
import { ensure } from './lib/system-program.js'
import { PROGRAMS, programsOf } from './programs.js'

/** @type {Record<string, import('./lib/steps.js').Step>} */
const PARTS = {
  versions: npmRun('versions'),
  // Servers bundled by esbuild, Rollup, webpack and Vite, in each way that keeps one copy of the core; and each package with
  // everything inside, in both formats, minified and not.
  bundlers: npmRun('bundlers'),
  // The samples of all pages by TypeScript 5.6, 5.9, 6 and 7, in projects of several settings.
  compilers: npmRun('test:full', ['deep/compilers']),
  // Bun and Deno run each framework and each Redis client.
  runtimes: npmRun('runtimes'),
  interleavings: npmRun('test:full', ['deep/interleavings']),
  // Random walks of memory against Redis, and of both against oracles, and other tests that try more here than in a merge.
  walks: npmRun('test:full', [
    'contract/',
    'deep/offenders',
    'deep/overrides',
    'http/lists-replaced',
    'http/permits-of-leavers',
    'policies/hostile',
    'policies/settled-charges',
    'policies/spellings',
    'policies/whole',
    'redis/',
    'unit/',
  ]),
  // The tests of a merge on a busy machine, as no test may depend on its speed.
  load: besideBusyLoops(npmRun('test:merge')),
  // The same, while now one and now another of their processes does not run.
  pauses: besidePauses(npmRun('test:merge')),
  // Every hour of ten years in twelve time zones against zoneinfo of Python, and attackers of calendars.
  calendars: npmRun('test:full', ['deep/calendars']),
  // Runs every benchmark, with meaningless figures, to show that it works.
  rehearsal: npmRun('test:full', ['deep/rehearsal']),
  mutants: npmRun('mutate'),
  chaos: npmRun('chaos'),
  fuzz: npmRun('fuzz'),
  // An hour of random policies and events, against a model of what each client may get.
  pairs: npmRun('test:full', ['deep/pairs']),
  // Every name that the sources read as a property of Object.prototype, in memory and over HTTP.
  pollution: npmRun('test:full', ['deep/pollution']),
  // CPU time of the most expensive requests that a parser accepts, for every kind of key, list, policy, responder and dialect.
  hostile: npmRun('test:full', ['deep/hostile']),
  // Paths to Tomcat behind nginx: none reaches a servlet past its policy.
  servlets: npmRun('test:full', ['deep/servlets']),
  // Replays of logs against live servers, and against goaccess.
  simulate: npmRun('test:full', ['deep/simulate/']),
  // The HTML report of `sluice simulate` in a browser.
  'simulate-page': npmRun('test:full', ['deep/simulate-page']),
  // Attackers of the bridges, and the tests that @fastify/rate-limit installs, on our store.
  bridges: npmRun('test:full', ['bridges/']),
  // A generated attacker of the console, in every framework.
  console: npmRun('test:full', ['deep/console/']),
  // The console's page in a browser: every page and action, by keyboard, and in three frameworks.
  'console-page': npmRun('test:full', ['deep/console-page']),
  docs: npmRun('docs:check'),
}

const IN_BROWSER = ['console-page', 'docs', 'simulate-page']

await whenStarted(import.meta.url, async () => {
  const names = process.argv.slice(2)
  const unknown = names.find((name) => !Object.hasOwn(PARTS, name))
  if (unknown !== undefined) throw new Error(`there is no ${unknown}; there are ${Object.keys(PARTS).join(', ')}`)
  await ensure(programsOf('test', 'release'))
  if (names.length === 0 || names.includes('servlets')) await ensure([PROGRAMS.tomcat])
  if (names.length === 0 || names.some((name) => IN_BROWSER.includes(name))) await ensure([PROGRAMS.chromium])
  await takeAll(
    Object.entries(PARTS).flatMap(([name, step]) => (names.length === 0 || names.includes(name) ? [step] : [])),
  )
})
