import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig, type TestProjectConfiguration } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Tests that need nothing but Node. */
const QUICK = ['unit', 'contract', 'http']
/**
 * What the first line of a file may say of it, each with the reason: `// Release: runs clusters. Takes long: begins first.`
 * Files that say nothing run in `npm test`, and share workers: loading the same modules again costs a second or two of
 * computing per worker.
 *
 * - `Runs alone`: it has a worker of its own, as it changes or inspects what belongs to the whole process.
 * - `Takes long`: begins first, so that it does not run when all others are done.
 * - `Release`: runs in `npm run test:release` alone.
 * - `Deep`: runs in `npm run deep` alone.
 */
const TAG = /\b(Runs alone|Takes long|Release|Deep): /g
type Tag = 'Runs alone' | 'Takes long' | 'Release' | 'Deep'

const firstLines = new Map<string, string>()

function says(file: string, tag: Tag): boolean {
  if (!firstLines.has(file)) {
    const [first = ''] = readFileSync(new URL(file, import.meta.url), 'utf8').split('\n', 1)
    const [, other] = /^\/\/ (?!Runs alone: |Takes long: |Release: |Deep: )(\w+(?: \w+)?): /.exec(first) ?? []
    // A misspelt word would run the file with others, or not before a release.
    if (other) throw new Error(`${file}: its first line begins with "${other}: ", which is none of the words for tests`)
    firstLines.set(file, first.startsWith('// ') ? first : '')
  }
  return [...String(firstLines.get(file)).matchAll(TAG)].some(([, said]) => said === tag)
}

interface Part {
  /** On the packages as built, or on their source. */
  readonly built: boolean
  readonly includes?: (file: string) => boolean
}

/** All but deep tests: on the build, as users have it, and faster to load; where a test looks inside, on the source. */
const onSource = (has: (file: string) => boolean): Part => ({
  built: false,
  includes: (file) => !says(file, 'Deep') && has(file) && looksInside(file),
})
const onBuild = (has: (file: string) => boolean): Part => ({
  built: true,
  includes: (file) => !says(file, 'Deep') && has(file) && !looksInside(file),
})
const any = () => true
const isOfRelease = (file: string) => says(file, 'Release')
const isOfEveryChange = (file: string) => !isOfRelease(file)

/**
 * The files to run and the packages under test, by SLUICE_TEST. Without it: all files, or those of the command line, on
 * the source.
 */
const SETS: Record<string, readonly Part[]> = {
  all: [{ built: false }],
  quick: [{ built: false, includes: (file) => isIn(file, asFolders(QUICK)) }],
  source: [onSource(any)],
  built: [onBuild(any)],
  // In one pool, so that some compute while others wait.
  change: [onSource(isOfEveryChange), onBuild(isOfEveryChange)],
  release: [onSource(isOfRelease), onBuild(isOfRelease)],
  merge: [onSource(any), onBuild(any)],
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
const isAlone = (file: string) => says(file, 'Runs alone')

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
      if (says(moduleId, 'Takes long')) return 0
      // A shared worker ends when the next file is of another project, so those of one project come last, and together.
      const { isolate, name } = project.config
      return isolate ? 1 : name.startsWith('built') ? 2 : 3
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
