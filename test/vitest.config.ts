import { readdirSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** What users meet: `npm test` tries it on what is built, as they install it. */
const OF_USERS = [
  'contract',
  'http',
  'metrics',
  'packages',
  'policies',
  'redis/contract',
  'redis/http',
  'redis/processes',
]
/** What needs nothing but Node. */
const QUICK = ['unit', 'contract', 'http']
/**
 * What looks at its whole process, at memory or timers, or sets how V8 runs, has a worker of its own. All other files share
 * theirs: in a worker of its own, each spends two seconds of computing on loading what others have loaded.
 */
const ALONE = [
  'deep/',
  'http/clients.test.ts',
  'http/slow-stream.test.ts',
  'metrics/',
  'packages/',
  'redis/breaker.test.ts',
  'redis/harness.test.ts',
  'redis/processes/',
  'tools/',
  '../tools/',
  'unit/limiter/',
  'unit/lists/file-list.test.ts',
  'unit/memory/',
]
/** What takes longest begins first, so that nothing is left to wait for when all others are done. */
const LONGEST = [
  'deep/chaos/chaos.test.ts',
  'redis/outages.test.ts',
  'redis/cluster/outages.test.ts',
  'deep/fuzz/connections.test.ts',
  'redis/cluster/moving-slots.test.ts',
  'redis/cluster/failover.test.ts',
  'tools/bench.test.ts',
  'redis/contract/cluster.test.ts',
  'packages/docs/documents.test.ts',
]

/** Which files run, on what, by SLUICE_TEST. Without it: all, or those that the command line names, on the source. */
const SETS: Record<string, { built: boolean; folders?: string[]; without?: string[] }> = {
  all: { built: false },
  quick: { built: false, folders: QUICK },
  // The mutants of the Lua are for `npm run deep`, which tries all of them.
  source: { built: false, without: [...OF_USERS, 'deep/mutation'] },
  built: { built: true, folders: OF_USERS },
}
const name = process.env.SLUICE_TEST ?? 'all'
const set = SETS[name]
if (!set) throw new Error(`SLUICE_TEST: expected ${Object.keys(SETS).join(', ')}; got ${name}`)

// These conditions reach Node's own require too, so 'import' must not be among them.
const conditions = set.built ? ['node'] : ['@sluice/source', 'node']
const isIn = (file: string, places: readonly string[]) => places.some((place) => file.startsWith(place))
const asFolders = (names: readonly string[]) => names.map((folder) => `${folder}/`)

/** Of tests, and of the tools that build the packages, as paths from here. */
const files = ['.', '../tools'].flatMap((folder) =>
  readdirSync(new URL(`${folder}/`, import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.includes('node_modules'))
    .map((file) => (folder === '.' ? file : `${folder}/${file}`))
    .filter((file) => !set.folders || isIn(file, asFolders(set.folders)))
    .filter((file) => !isIn(file, asFolders(set.without ?? []))),
)
const isAlone = (file: string) => isIn(file, ALONE)

// What is built is loaded anew for each file, as a user's process loads it.
// No files are named outside of projects: those would run once more in each of them.
const projects: TestProjectConfiguration[] = [
  { extends: true, test: { name: 'alone', include: files.filter(isAlone) } },
  { extends: true, test: { name: 'shared', include: files.filter((file) => !isAlone(file)), isolate: set.built } },
]

class LongestFirst extends BaseSequencer {
  override async sort(all: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const place = LONGEST.findIndex((file) => moduleId.endsWith(`/test/${file}`))
      // A shared worker ends when the next file does not share it: so all of those that do come last.
      return place >= 0 ? place : LONGEST.length + (project.config.isolate ? 0 : 1)
    }
    return (await super.sort(all)).sort((a, b) => rank(a) - rank(b))
  }
}

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    projects,
    // What has not changed is not transformed again by the next run.
    experimental: { fsModuleCache: true, fsModuleCachePath: fileURLToPath(new URL('../.tmp/vitest', import.meta.url)) },
    sequence: { sequencer: LongestFirst },
    // Many tests wait for most of their time, so that two cores do for four.
    maxWorkers: 4,
    // Tests look at the warnings that they expect; printed, they would hide everything else.
    execArgv: ['--disable-warning=SluiceWarning'],
    // Only what hangs takes so long, also on a machine that does many other things at once.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 15_000 } },
    // Packages as built are loaded by Node itself, as a user's are.
    server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
    // scripts/test-report.js adds these up.
    reporters: [
      'default',
      ['json', { outputFile: fileURLToPath(new URL(`../.tmp/reports/${name}.json`, import.meta.url)) }],
    ],
  },
})
