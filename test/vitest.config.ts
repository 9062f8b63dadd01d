import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig, type TestProjectConfiguration } from 'vitest/config'

/** What users meet: `npm test` tries it on what is built, as they install it. */
const OF_USERS = ['contract', 'http', 'packages', 'redis/contract', 'redis/http', 'redis/processes']
/** What needs nothing but Node. */
const QUICK = ['unit', 'contract', 'http']
/** Files of these share their worker with others, in `quick` alone: half of its time would go to loading the same again. */
const SHARING = ['contract', 'http']
/** But for those that count what the whole process does. */
const ALONE = ['http/clients.test.ts']

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
const filesIn = (folder: string) => `${folder}/**/*.test.ts`

// Tests of the tools that build the packages.
const TOOLS = '../tools/*/test/**/*.test.ts'

const sharing: TestProjectConfiguration = {
  extends: true,
  test: {
    name: 'sharing',
    include: SHARING.map(filesIn),
    exclude: [...configDefaults.exclude, ...ALONE],
    isolate: false,
  },
}
const alone: TestProjectConfiguration = {
  extends: true,
  test: { name: 'alone', include: [...QUICK.filter((folder) => !SHARING.includes(folder)).map(filesIn), ...ALONE] },
}

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: set.folders?.map(filesIn) ?? ['**/*.test.ts', TOOLS],
    exclude: [...configDefaults.exclude, ...(set.without ?? []).map(filesIn)],
    ...(name === 'quick' && { projects: [sharing, alone] }),
    // Many tests wait for most of their time, so that two cores do for three.
    maxWorkers: 3,
    // Tests look at the warnings that they expect; printed, they would hide everything else.
    execArgv: ['--disable-warning=SluiceWarning'],
    // Only what hangs takes so long, also on a machine that does many other things at once.
    testTimeout: 300_000,
    hookTimeout: 300_000,
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
