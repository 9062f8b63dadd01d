// Packs every package as for publishing and checks the tarballs: their contents, by publint and arethetypeswrong, and whether
// they serve the programs in package-users/ as in a user's project. Needs a build before.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { follow, reachable } from './lib/declarations.js'
import { completionsIn, problemsOfCompletions } from './lib/editor.js'
import { entriesOf } from './lib/entries.js'
import { root } from './lib/project.js'
import { linksOf, release } from './lib/repository.js'
import { run, whenStarted } from './lib/run.js'
import { pack, place, runIn } from './lib/users-project.js'

const workspace = join(root, '.tmp/packages')
// The folder of the unpacked packages, as in a user's project, with their dependencies beside them.
const installed = join(workspace, 'node_modules')

/** The files of each package beside its entries. */
const FILES = ['package.json', 'LICENSE', 'README.md', 'dist/types/package.json', 'dist/program.cjs']
/** Further files of some packages. */
const PARTS = /** @type {Record<string, string[]>} */ ({
  cli: ['openapi.json'],
  console: ['dist/NOTICE', 'dist/page.cjs'],
  core: ['dist/redis.cjs', 'dist/scripts.cjs'],
  express: ['dist/CARD.md', 'dist/ERRORS.md'],
  fastify: ['dist/CARD.md', 'dist/ERRORS.md'],
  koa: ['dist/CARD.md', 'dist/ERRORS.md'],
  nestjs: ['dist/CARD.md', 'dist/ERRORS.md'],
  policies: ['sql/postgres-1.sql', 'src/schema/policies.schema.json'],
  prometheus: ['alerts.yaml', 'dashboard.json'],
})
/**
 * Bounds the growth of a package. A third of the core's is the program, which would be a twentieth less with all names
 * shortened, and two fifths are the modules for bundlers. A seventh are declarations, three quarters of these docstrings.
 */
const LARGEST_TARBALL = 600_000

/**
 * The problems of a package's list of files; none when it is empty.
 *
 * @param {string[]} files paths inside the package
 * @param {object} expected
 * @param {string[]} expected.entries by name: `index`, `http`
 * @param {string[]} expected.declarations that the entries reach, within `dist`: `types/declarations.d.ts`
 * @param {string[]} [expected.modules] that bundlers take, within `dist`: `module/index.js`
 * @param {string[]} [expected.parts] other files, such as programs that it installs
 * @returns {string[]}
 */
export function problemsOfContents(files, { entries, declarations, modules = [], parts = [] }) {
  const present = new Set(files)
  const faces = entries.flatMap((entry) => ['cjs', 'js', 'd.cts', 'd.ts'].map((ending) => `dist/${entry}.${ending}`))
  const wanted = [...FILES, ...parts, ...faces, ...[...declarations, ...modules].map((file) => `dist/${file}`)]
  const missing = wanted.filter((file) => !present.has(file)).map((file) => `${file} is missing`)
  const strays = files.filter((file) => !wanted.includes(file)).map((file) => `${file} does not belong in the package`)
  return [...missing, ...strays]
}

/** @param {[name: string, tarball: string]} packed the name without the scope */
async function unpack([name, tarball]) {
  const folder = join(installed, '@sluice', name)
  mkdirSync(folder, { recursive: true })
  await run('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'])
  return { name, folder, tarball }
}

/**
 * Links the dependencies of the package where Node looks for them, from the workspace: nothing is downloaded.
 *
 * @param {string} folder of the unpacked package
 */
function linkDependencies(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const home = join(root, 'packages', manifest.name.split('/')[1])
  const { devDependencies } = JSON.parse(readFileSync(join(home, 'package.json'), 'utf8'))
  for (const dependency of Object.keys({
    ...manifest.dependencies,
    ...manifest.peerDependencies,
    ...devDependencies,
  })) {
    const link = join(installed, dependency)
    const provided = join(home, 'node_modules', dependency)
    if (existsSync(link) || !existsSync(provided)) continue
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(provided, link)
  }
}

/** @param {string} folder */
function filesIn(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}

/**
 * @param {string} name
 * @param {string} folder of the unpacked package
 */
function expectedContents(name, folder) {
  const manifest = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'))
  const entries = entriesOf(manifest).map((entry) => entry.name)
  return {
    entries,
    declarations: [...reachable(join(folder, 'dist'), entries)],
    modules: [...follow(join(folder, 'dist'), modulesIn(manifest))],
    parts: [
      ...(PARTS[name] ?? []),
      ...Object.values(programsOf(folder)),
      ...(manifest.sluice?.apart ?? []).map((/** @type {string} */ entry) => `dist/${entry}.program.cjs`),
    ],
  }
}

/**
 * The modules of a package's entries, within `dist`. Some packages have none.
 *
 * @param {{ exports: Record<string, { module?: string }> }} manifest
 */
function modulesIn({ exports }) {
  return Object.values(exports).flatMap(({ module }) => (module ? [module.replace('./dist/', '')] : []))
}

/**
 * The programs that a package installs, by name, as paths within it.
 *
 * @param {string} folder of the unpacked package
 * @returns {Record<string, string>}
 */
function programsOf(folder) {
  const { bin = {} } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return Object.fromEntries(Object.entries(bin).map(([name, file]) => [name, String(file).replace('./', '')]))
}

/** @param {{ name: string, folder: string, tarball: string }} unpacked */
async function lint({ name, folder, tarball }) {
  const { exports } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const excludeEntrypoints = Object.keys(exports).filter((entry) => /\.(?:json|yaml)$/.test(entry))
  await run('publint', ['run', tarball, '--strict'], { quiet: true })
  const analysis = await checkPackage(createPackageFromTarballData(readFileSync(tarball)), { excludeEntrypoints })
  const problems = problemsOfTypes(analysis)
  if (problems.length > 0) throw new Error(`@sluice/${name}, arethetypeswrong:\n${problems.join('\n')}`)
  console.log(`@sluice/${name}: contents, publint and arethetypeswrong are fine`)
}

/**
 * The problems in every way of resolving types, also `node10`, which TypeScript has until version 6: it reads `typesVersions`.
 *
 * @param {import('@arethetypeswrong/core').CheckResult} analysis
 * @returns {string[]}
 */
export function problemsOfTypes(analysis) {
  return analysis.types ? analysis.problems.map((problem) => JSON.stringify(problem)) : ['the package has no types']
}

/**
 * Starts each program of a package like a user, without a terminal or input.
 *
 * @param {string} folder of the unpacked package
 */
async function startPrograms(folder) {
  const { version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  for (const [name, file] of Object.entries(programsOf(folder))) {
    const program = join(folder, file)
    // npm links programs as they are: without this they do not start.
    if ((statSync(program).mode & 0o111) === 0) throw new Error(`${name}: ${file} is not executable`)
    const said = await run(program, ['--version'], { quiet: true })
    if (said.trim() !== version) throw new Error(`${name} --version: expected ${version}, got ${said}`)
    await run(program, ['--help'], { quiet: true })
    console.log(`${name} starts from the tarball`)
  }
}

/**
 * The addresses of a packed manifest that do not follow from that of the repository.
 *
 * @param {string} name
 * @param {string} folder of the unpacked package
 */
function problemsOfLinks(name, folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  return Object.entries(linksOf(name, release().repository))
    .filter(([field, value]) => JSON.stringify(manifest[field]) !== JSON.stringify(value))
    .map(([field, value]) => `package.json: ${field}: expected ${JSON.stringify(value)}`)
}

const NODE10 = { module: 'commonjs', moduleResolution: 'node10', esModuleInterop: true }

/**
 * The ways in which a user's TypeScript resolves packages: from CommonJS, from an ES module, for a bundler, and as before
 * version 6.
 */
const COMPILERS = [
  { program: 'typed.ts', files: ['typed.cts'], options: { module: 'node16', moduleResolution: 'node16' } },
  { program: 'typed.ts', files: ['typed.mts'], options: { module: 'node16', moduleResolution: 'node16' } },
  { program: 'typed.ts', files: ['typed.ts'], options: { module: 'esnext', moduleResolution: 'bundler' } },
  { program: 'typed.ts', files: ['typed.ts'], options: NODE10, version: 'typescript5' },
  // Nest 12 consists of ES modules, which CommonJS of `node16` may not load.
  { program: 'nest.ts', files: ['nest.cts', 'nest.mts'], options: { module: 'nodenext' } },
]

/** Of `tsc --init`. */
const STRICT = { strict: true, exactOptionalPropertyTypes: true }

/** The compilers that users have. */
const VERSIONS = ['typescript', 'typescript5']

/** @param {string} version */
const compilerOf = (version) => join(root, 'node_modules', version, 'bin/tsc')

/** Compiles `mistakes.ts`, whose errors have to say what its comments say, and nothing else. */
async function compileMistakes() {
  const text = readFileSync(join(root, 'scripts/package-users/mistakes.ts'), 'utf8')
  writeFileSync(join(workspace, 'mistakes.ts'), text)
  const options = {
    target: 'es2022',
    module: 'nodenext',
    strict: true,
    noEmit: true,
    types: ['node'],
    skipLibCheck: true,
  }
  writeFileSync(join(workspace, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['mistakes.ts'] }))
  for (const version of VERSIONS) {
    const printed = await run(process.execPath, [compilerOf(version), '-p', 'tsconfig.json', '--pretty', 'false'], {
      cwd: workspace,
      quiet: true,
    }).catch(({ message }) => String(message))
    const problems = problemsOfErrors(text, printed)
    if (problems.length > 0) throw new Error(`mistakes.ts, ${version}:\n${problems.join('\n')}\n${printed}`)
  }
}

/**
 * @param {string} text of a program, in which `// says: …` stands before each line with an error
 * @param {string} printed by the compiler
 * @returns {string[]} the errors that say something else, and those that are not expected or missing
 */
export function problemsOfErrors(text, printed) {
  const said = new Map(
    printed.split(/^(?=\S+\(\d+,\d+\): )/m).flatMap((each) => {
      const [, line, error] = /^\S+\((\d+),\d+\): ([\s\S]*)$/.exec(each) ?? []
      return line === undefined ? [] : [/** @type {const} */ ([Number(line), String(error)])]
    }),
  )
  const expected = new Map(
    text.split('\n').flatMap((line, i) => {
      const [, words] = /^\/\/ says: (.*)$/.exec(line) ?? []
      return words === undefined ? [] : [/** @type {const} */ ([i + 2, words])]
    }),
  )
  return [
    ...[...expected]
      .filter(([line, words]) => !said.get(line)?.includes(words))
      .map(([line, words]) => `${line}: expected ${words}`),
    ...[...said].filter(([line]) => !expected.has(line)).map(([line, error]) => `${line}: not expected: ${error}`),
  ]
}

/** Runs the programs in `package-users/` on the unpacked packages. */
async function serveUsers() {
  writeFileSync(join(workspace, 'package.json'), '{ "private": true }\n')
  const types = join(installed, '@types/node')
  if (!existsSync(types)) symlinkSync(join(root, 'node_modules/@types/node'), types)

  await runIn(workspace, [process.execPath], 'both.mjs')
  place(workspace, 'jest.test.cjs')
  await run('jest', ['--rootDir', workspace, '--testMatch', '**/jest.test.cjs', '--ci', '--watchman=false'], {
    cwd: workspace,
    quiet: true,
  })
  place(workspace, 'vitest.test.mjs')
  await run('vitest', ['run', '--root', workspace, 'vitest.test.mjs'], { cwd: workspace, quiet: true })
  for (const { program, files, options, version = 'typescript' } of COMPILERS) {
    for (const file of files) place(workspace, program, file)
    const compilerOptions = { target: 'es2022', ...STRICT, noEmit: true, types: ['node'], ...options }
    writeFileSync(join(workspace, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
    await run(process.execPath, [compilerOf(version), '-p', 'tsconfig.json'], { cwd: workspace })
  }
  await compileMistakes()
  place(workspace, 'editor.ts')
  const { RATE_LIMIT_OPTIONS } = await import(pathToFileURL(join(installed, '@sluice/core/dist/http.js')).href)
  const problems = problemsOfCompletions(completionsIn(workspace, 'editor.ts'), RATE_LIMIT_OPTIONS)
  if (problems.length > 0) throw new Error(`editor.ts:\n${problems.join('\n')}`)
  console.log(
    'import and require of every entry in one program, Jest, Vitest, and TypeScript from CommonJS, ES modules and for bundlers are fine',
  )
}

await whenStarted(import.meta.url, async () => {
  rmSync(workspace, { recursive: true, force: true })
  const packages = await Promise.all(Object.entries(await pack(workspace)).map(unpack))

  for (const { name, folder, tarball } of packages) {
    const problems = problemsOfContents(filesIn(folder), expectedContents(name, folder))
    problems.push(...problemsOfLinks(name, folder))
    const { size } = statSync(tarball)
    if (size > LARGEST_TARBALL) problems.push(`the tarball has ${size} bytes, more than ${LARGEST_TARBALL}`)
    if (problems.length > 0) throw new Error(`@sluice/${name}:\n${problems.join('\n')}`)
    linkDependencies(folder)
  }
  await Promise.all([...packages.map(lint), ...packages.map(({ folder }) => startPrograms(folder)), serveUsers()])
})
