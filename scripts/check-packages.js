// Packs every package as for publishing and checks the tarballs: what is in them, what publint and arethetypeswrong say
// of them, and whether they load with import and with require. Needs a build before.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { dirname, join, posix } from 'node:path'
import { pnpm } from './lib/pnpm.js'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'

const workspace = join(root, '.tmp/packages')
// Where the unpacked packages live as in a user's project, with their dependencies beside them.
const installed = join(workspace, 'node_modules')

/**
 * What is wrong with a package's list of files; nothing when the list is empty.
 *
 * @param {string[]} files paths inside the package
 * @param {(file: string) => string} read
 * @returns {string[]}
 */
export function problemsOfContents(files, read) {
  const present = new Set(files)
  const problems = ['package.json', 'LICENSE', 'dist/index.js', 'dist/index.d.ts']
    .filter((file) => !present.has(file))
    .map((file) => `${file} is missing`)

  const sources = files
    .filter((file) => /^src\/.*\.ts$/.test(file))
    .map((file) => file.slice('src/'.length, -'.ts'.length))
  for (const module of sources) {
    for (const ending of ['.js', '.js.map', '.d.ts', '.d.ts.map']) {
      if (!present.has(`dist/${module}${ending}`)) problems.push(`src/${module}.ts has no dist/${module}${ending}`)
    }
  }
  for (const file of files.filter((name) => name.startsWith('dist/'))) {
    const module = file.slice('dist/'.length).replace(/(\.d\.ts|\.js)(\.map)?$/, '')
    if (!sources.includes(module))
      problems.push(`${file} is left over from an earlier build; delete dist and build again`)
    else if (file.endsWith('.map')) problems.push(...problemsOfMap(file, read(file), present))
  }
  const strays = files.filter((file) => !/^(dist|src)\/|^(package\.json|README\.md|LICENSE)$/.test(file))
  return [...problems, ...strays.map((file) => `${file} does not belong in the package`)]
}

/**
 * @param {string} file
 * @param {string} json the source map
 * @param {Set<string>} present
 */
function problemsOfMap(file, json, present) {
  /** @type {{ sources: string[] }} */
  const { sources } = JSON.parse(json)
  return sources
    .map((source) => posix.join(posix.dirname(file), source))
    .filter((source) => !present.has(source))
    .map((source) => `${file} points to ${source}, which is not in the package`)
}

/** @param {string} name without the scope */
async function packAndUnpack(name) {
  const folder = join(installed, '@sluice', name)
  mkdirSync(folder, { recursive: true })
  const tarball = join(workspace, `${name}.tgz`)
  await pnpm(['pack', '--out', tarball], { cwd: join(root, 'packages', name), quiet: true })
  await run('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'])
  return { name, folder, tarball }
}

/**
 * Puts what the package depends on where Node looks for it, straight from the workspace: nothing is downloaded.
 *
 * @param {string} folder of the unpacked package
 */
function linkDependencies(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  for (const dependency of Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies })) {
    const link = join(installed, dependency)
    const provided = join(root, 'packages', manifest.name.split('/')[1], 'node_modules', dependency)
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

/** @param {string} name */
async function loads(name) {
  const specifier = `@sluice/${name}`
  const esm = `const names = Object.keys(await import('${specifier}')); if (names.length === 0) throw new Error('${specifier} exports nothing')`
  const cjs = `require('${specifier}')`
  await run(process.execPath, ['--input-type=module', '-e', esm], { cwd: workspace })
  await run(process.execPath, ['--no-warnings', '--input-type=commonjs', '-e', cjs], { cwd: workspace })
}

await whenStarted(import.meta.url, async () => {
  rmSync(workspace, { recursive: true, force: true })
  const names = readdirSync(join(root, 'packages')).filter((name) =>
    existsSync(join(root, 'packages', name, 'package.json')),
  )
  const packages = []
  for (const name of names) packages.push(await packAndUnpack(name))

  for (const { name, folder } of packages) {
    const problems = problemsOfContents(filesIn(folder), (file) => readFileSync(join(folder, file), 'utf8'))
    if (problems.length > 0) throw new Error(`@sluice/${name}:\n${problems.join('\n')}`)
    linkDependencies(folder)
  }
  for (const { name, tarball } of packages) {
    await run('publint', ['run', tarball, '--strict'], { quiet: true })
    await run('attw', [tarball, '--profile', 'esm-only', '--no-emoji', '--no-color'], { quiet: true })
    await loads(name)
    console.log(`@sluice/${name}: contents, publint, arethetypeswrong, import and require are fine`)
  }
})
