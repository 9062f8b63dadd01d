import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Tests that need nothing but Node. */
const QUICK = ['unit', 'contract', 'http']
/**
 * Files with a worker of their own, as they load a package again, inspect all timers, warnings, stores or memory of their process, fake its
 * timers, by which stores that earlier files left would go on, or change V8 flags. All other files share workers: loading
 * the same modules again costs a second or two of computing per worker. `http/nest` is alone as Nest found no
 * HttpAdapterHost or ModuleRef in some shared workers; which earlier files cause that is unknown.
 */
const ALONE = [
  'cli/serve/metrics.test.ts',
  'console/figures',
  'console/streams.test.ts',
  'deep/chaos/chaos.test.ts',
  'deep/chaos/memory.test.ts',
  'deep/figures/',
  'deep/fuzz/connections.test.ts',
  'deep/fuzz/replies.test.ts',
  'deep/hostile/',
  'deep/interleavings/bans.test.ts',
  'deep/interleavings/ends.test.ts',
  'deep/interleavings/queues.test.ts',
  'deep/interleavings/relaxed.test.ts',
  'deep/interleavings/turns.test.ts',
  'http/clients.test.ts',
  'http/events.test.ts',
  'http/nest/',
  'http/slow-stream.test.ts',
  'metrics/',
  'packages/docs/documents.test.ts',
  'packages/docs/migration-rows.test.ts',
  'packages/redis-apart.test.ts',
  'redis/breaker.test.ts',
  'redis/events.test.ts',
  'redis/figures.test.ts',
  'redis/harness.test.ts',
  'redis/relaxed/bound.test.ts',
  'redis/relaxed/one-process.test.ts',
  'unit/limiter/acquire.test.ts',
  'unit/limiter/booked-turns.test.ts',
  'unit/limiter/counting.test.ts',
  'unit/limiter/durations-in-seconds.test.ts',
  'unit/limiter/on-verdict.test.ts',
  'unit/limiter/set-up-advice.test.ts',
  'unit/lists/file-list.test.ts',
  'unit/memory/',
]
/**
 * The longest files begin first, so that none runs when all others are done. Files that mostly wait alternate with
 * files that compute.
 */
const LONGEST = [
  'redis/outages.test.ts',
  'redis/store-wide-blocks.test.ts',
  'packages/examples/examples.test.ts',
  'redis/cluster/outages.test.ts',
  'contract/memory.test.ts',
  'redis/acl.test.ts',
  'redis/contract/ioredis.test.ts',
  'redis/cluster/failover.test.ts',
  'packages/docs/documents.test.ts',
  'redis/faults.test.ts',
  'redis/contract/cluster.test.ts',
  'redis/sentinel.test.ts',
  'redis/cluster/moving-slots.test.ts',
  'packages/examples/http.test.ts',
  'deep/fuzz/connections.test.ts',
  'packages/gateways/gateways.test.ts',
]

interface Part {
  /** On the packages as built, or on their source. */
  readonly built: boolean
  readonly includes?: (file: string) => boolean
}

/**
 * Only for `npm run deep`: what takes long, measures, or needs a servlet container, goaccess or a browser; and the contract
 * on node-redis and one server, as every run has it on node-redis with a cluster, and on ioredis with one server.
 */
const ONLY_DEEP = [
  'deep/calendars',
  'deep/chaos',
  'deep/compilers',
  'deep/console-page',
  'deep/hostile',
  'deep/mutation',
  'deep/pollution',
  'deep/rehearsal',
  'deep/servlets',
  'deep/simulate',
  'redis/contract/node-redis',
]

/** What `npm test` runs: on the build, as users have it, and faster to load; where a test looks inside, on the source. */
const isInMerge = (file: string) => !isIn(file, ONLY_DEEP)
const ON_SOURCE: Part = { built: false, includes: (file) => isInMerge(file) && looksInside(file) }
const ON_BUILD: Part = { built: true, includes: (file) => isInMerge(file) && !looksInside(file) }

/**
 * The files to run and the packages under test, by SLUICE_TEST. Without it: all files, or those of the command line, on
 * the source.
 */
const SETS: Record<string, readonly Part[]> = {
  all: [{ built: false }],
  quick: [{ built: false, includes: (file) => isIn(file, asFolders(QUICK)) }],
  source: [ON_SOURCE],
  built: [ON_BUILD],
  // In one pool, so that some compute while others wait.
  merge: [ON_SOURCE, ON_BUILD],
}
const name = process.env.SLUICE_TEST ?? 'all'
const parts = SETS[name]
if (!parts) throw new Error(`SLUICE_TEST: expected ${Object.keys(SETS).join(', ')}; got ${name}`)

const isIn = (file: string, places: readonly string[]) => places.some((place) => file.startsWith(place))

function asFolders(names: readonly string[]): string[] {
  return names.map((folder) => `${folder}/`)
}

/** The files of tests, and of the tools that build the packages, relative to this folder. */
const files = ['.', '../tools'].flatMap((folder) =>
  readdirSync(new URL(`${folder}/`, import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'))
    .map((file) => (folder === '.' ? file : `${folder}/${file}`)),
)
const isAlone = (file: string) => isIn(file, ALONE)

/** Whether modules of this folder open modules inside of a package, as far as known. */
const known = new Map<string, boolean>()

/** Whether a file, or one that it imports, opens modules inside of a package: they are apart in the source alone. */
function looksInside(file: string): boolean {
  if (!known.has(file)) {
    // For a circle of imports, until the others are read.
    known.set(file, false)
    known.set(
      file,
      importsOf(file).some((path) => INSIDE.test(path) || (isOfTests(path) && looksInside(path))),
    )
  }
  return known.get(file) === true
}

const INSIDE = /^\.\.\/packages\/(?!testing)\w+\/src\//
const isOfTests = (path: string) => !path.startsWith('..') && existsSync(new URL(path, import.meta.url))

/** The modules that a file imports by their paths, relative to this folder. */
function importsOf(file: string): string[] {
  const source = readFileSync(new URL(file, import.meta.url), 'utf8')
  return [...source.matchAll(/(?:from|import|import\() ?'(\.[^']*)'/g)].map(([, path = '']) =>
    posix.join(posix.dirname(file), path.replace(/\.js$/, '.ts')),
  )
}

/** The files of a part as two projects: those with a worker each, and those that share workers. */
function projectsOf({ built, includes = () => true }: Part): TestProjectConfiguration[] {
  const include = files.filter(includes)
  // These conditions reach Node's own require, too, so 'import' must not be among them.
  const conditions = built ? ['node'] : ['@sluice/source', 'node']
  const project = (suffix: string, include: string[], isolate: boolean): TestProjectConfiguration => ({
    extends: true,
    resolve: { conditions },
    ssr: { resolve: { conditions } },
    test: {
      name: `${built ? 'built' : 'source'}, ${suffix}`,
      include,
      isolate,
      env: { SLUICE_TEST: built ? 'built' : 'source' },
    },
  })
  // No files are named outside of projects, as they would run again in each project.
  return [
    project('alone', include.filter(isAlone), true),
    project(
      'shared',
      include.filter((file) => !isAlone(file)),
      false,
    ),
  ]
}

class LongestFirst extends BaseSequencer {
  override async sort(all: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const place = LONGEST.findIndex((file) => moduleId.endsWith(`/test/${file}`))
      if (place >= 0) return place
      // A shared worker ends when the next file is of another project, so those of one project come last, and together.
      const { isolate, name } = project.config
      return LONGEST.length + (isolate ? 0 : name.startsWith('built') ? 1 : 2)
    }
    return (await super.sort(all)).sort((a, b) => rank(a) - rank(b))
  }
}

const LONGEST_MS = process.env.SLUICE_EFFORT === 'full' ? 3_600_000 : 600_000

export default defineConfig({
  test: {
    projects: parts.flatMap(projectsOf),
    // Unchanged files are not transformed again by the next run.
    experimental: { fsModuleCache: true, fsModuleCachePath: fileURLToPath(new URL('../.tmp/vitest', import.meta.url)) },
    globalSetup: parts.some(({ built }) => built) ? ['support/built-packages.ts'] : [],
    sequence: { sequencer: LongestFirst },
    // Many tests mostly wait, so two cores do for more workers; tests in memory wait less.
    maxWorkers: name === 'quick' ? 4 : 6,
    // Tests check the warnings that they expect; printed, they would hide everything else.
    execArgv: ['--disable-warning=SluiceWarning'],
    // Only a hanging test takes so long, also on a busy machine.
    testTimeout: LONGEST_MS,
    hookTimeout: LONGEST_MS,
    expect: { poll: { timeout: 15_000 } },
    // Built packages are loaded by Node itself, as for users.
    server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
    // scripts/test-report.js adds up these reports.
    reporters: [
      'default',
      ['json', { outputFile: fileURLToPath(new URL(`../.tmp/reports/${name}.json`, import.meta.url)) }],
    ],
  },
})
