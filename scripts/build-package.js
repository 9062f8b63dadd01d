// Builds the package in the current folder into dist/: node ../../scripts/build-package.js
// With SLUICE_BUILD=program, only what Node runs, which is enough for the demo.
//
// CommonJS is the program, one file for all entries; everything else re-exports it. A process may load a package by `import` in
// one place and by `require` in another (Jest, a CommonJS plugin), or by several entries. It therefore has one copy of every
// class, and one state. Bundlers alone take the modules in dist/module, of which they leave out those that nothing uses.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join, posix } from 'node:path'
import { build } from 'esbuild'
import { pageApart } from './lib/console-page.js'
import { augmentationsIn, removeUnreachable, withAugmentations } from './lib/declarations.js'
import { entriesOf, moduleOf } from './lib/entries.js'
import { withOneThrow } from './lib/one-throw.js'
import { withUndefined } from './lib/optional-fields.js'
import { root } from './lib/project.js'
import { buildWithRedisApart, hasRedisStore, REDIS_FILE } from './lib/redis-apart.js'
import { run, whenStarted } from './lib/run.js'
import { scriptsApart } from './lib/scripts-apart.js'
import { shortenNames } from './lib/shorten-names.js'
import { withWholeTexts } from './lib/whole-texts.js'

/** @typedef {import('./lib/entries.js').Entry} Entry */
/** @typedef {{ engines: { node: string }, exports: Record<string, unknown>, sluice?: { apart: string[] } }} Manifest */

const isProgramAlone = process.env.SLUICE_BUILD === 'program'

/**
 * @param {string} folder of the package
 */
export async function buildPackage(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const dist = join(folder, 'dist')
  const entries = entriesOf(manifest)
  rmSync(dist, { recursive: true, force: true })
  mkdirSync(dist)

  await Promise.all([
    isProgramAlone || run('tsc', ['-p', 'tsconfig.json'], { cwd: folder }),
    ...entriesApart(manifest, entries).map((entry) => buildApart(folder, dist, manifest, entry)),
    buildProgram(folder, dist, manifest, entriesOfProgram(manifest, entries)).then((sources) => {
      for (const { name } of entriesOfProgram(manifest, entries)) writeFaces(dist, name)
      return hasModules(manifest) && !isProgramAlone
        ? buildModules(folder, dist, manifest, entries, sources)
        : undefined
    }),
  ])
  if (!isProgramAlone) await writeDeclarations(folder, dist, entries)
  if (!ADAPTERS.includes(manifest.name)) return
  writePage(dist, 'errors', (page) => page)
  writePage(dist, 'card', (page) => cardFor(manifest.name.replace('@sluice/', ''), page))
}

/** Adapters, the packages that users install, hold what explains warnings and errors, and a card of their options. */
const ADAPTERS = ['@sluice/express', '@sluice/fastify', '@sluice/koa', '@sluice/nestjs']

/**
 * Its links to other pages lead nowhere from there, so their texts stay alone.
 *
 * @param {string} dist
 * @param {string} name
 * @param {(page: string) => string} make
 */
function writePage(dist, name, make) {
  const page = make(readFileSync(join(root, 'docs', `${name}.md`), 'utf8'))
  writeFileSync(join(dist, `${name.toUpperCase()}.md`), page.replace(/\[([^\]]+)\]\((?!https?:|#)[^)]*\)/g, '$1'))
}

/**
 * The card with the sample of one framework alone, and options of its type.
 *
 * @param {string} adapter without the scope
 * @param {string} page
 */
export function cardFor(adapter, page) {
  const type = `${adapter === 'nestjs' ? 'Nest' : adapter.charAt(0).toUpperCase() + adapter.slice(1)}RateLimitOptions`
  const own = adapter === 'express' ? 'attach' : `attach-${adapter}`
  return page
    .replace(/<details>.*<\/summary>\n\n|\n<\/details>\n/g, '')
    .replace(/```ts name=(attach[\w-]*)\n[\s\S]*?```\n+/g, (block, name) => (name === own ? block : ''))
    .replace(/^```ts name=.*$/gm, '```ts')
    .replaceAll("'@sluice/express'", `'@sluice/${adapter}'`)
    .replaceAll('ExpressRateLimitOptions', type)
}

/**
 * Entries with a program of their own, which share no state with the others: who imports them loads nothing else of the package.
 * The manifest names them in `sluice.apart`.
 *
 * @param {Manifest} manifest
 * @param {Entry[]} entries
 */
const entriesApart = ({ sluice }, entries) => entries.filter(({ name }) => sluice?.apart.includes(name))

/**
 * @param {Manifest} manifest
 * @param {Entry[]} entries
 */
const entriesOfProgram = ({ sluice }, entries) => entries.filter(({ name }) => !sluice?.apart.includes(name))

/**
 * @param {string} folder
 * @param {string} dist
 * @param {Manifest} manifest
 * @param {Entry} entry
 */
async function buildApart(folder, dist, manifest, entry) {
  const program = `${entry.name}.program.cjs`
  await buildProgram(folder, dist, manifest, [entry], program)
  writeFaces(dist, entry.name, program)
}

/**
 * @param {string} folder
 * @param {string} dist
 * @param {Manifest} manifest
 * @param {Entry[]} entries
 * @param {string} program
 * @returns {Promise<string[]>} its sources
 */
async function buildProgram(folder, dist, manifest, entries, program = 'program.cjs') {
  const outfile = join(dist, program)
  /** @type {import('./lib/redis-apart.js').ProgramOptions} */
  const options = {
    ...commonOptions(folder, manifest),
    absWorkingDir: folder,
    stdin: {
      contents: entries.map(({ name, source }) => `export * as '${name}' from './${source}'`).join('\n'),
      resolveDir: folder,
    },
    outfile,
    bundle: true,
    format: 'cjs',
    // Packages installed beside it stay one copy, shared with everything else that uses them.
    packages: 'external',
    plugins: [scriptsApart(dist), pageApart(dist)],
    metafile: true,
    ...whitespaceFor(entries),
    // Where a file is one knows by `__filename`; `import.meta` is asked in ES modules alone.
    logOverride: { 'empty-import-meta': 'silent' },
  }
  const finish = (/** @type {string} */ text) =>
    isLarge(entries) && !isProgramAlone
      ? shortenNames(withoutCopies(text))
      : Promise.resolve(withWholeTexts(withoutCopies(text)))
  const inputs = hasRedisStore(folder)
    ? await buildWithRedisApart(options, finish)
    : (await build(options)).metafile.inputs
  writeFileSync(outfile, await finish(readFileSync(outfile, 'utf8')))
  for (const file of hasRedisStore(folder) ? [outfile, join(dist, REDIS_FILE)] : [outfile]) {
    writeFileSync(file, withOneThrow(readFileSync(file, 'utf8')))
  }
  return Object.keys(inputs).filter((file) => file !== '<stdin>')
}

/**
 * A program that takes modules of Node as they are. esbuild has each file that imports one copy all its properties, for default
 * exports: that is work for each process that starts.
 *
 * @param {string} program
 */
function withoutCopies(program) {
  return program.replace(/(\w+) ?= ?__toESM\((require\("node:[\w/]+"\))(?:, ?1)?\)/g, (whole, name, required) =>
    program.includes(`${name}.default`) ? whole : `${name}=${required}`,
  )
}

/**
 * Lines stay short enough to be shown in stack traces. Those of a large package are made later, with its names.
 *
 * @param {Entry[]} entries
 */
const whitespaceFor = (entries) => (isLarge(entries) ? {} : { minifyWhitespace: true, lineLimit: 160 })

/**
 * Whether bundlers take the package by the condition `module`. Of others they take the program, which imports those that have it.
 *
 * @param {Manifest} manifest
 */
const hasModules = ({ exports }) =>
  Object.values(exports).some((conditions) => Object.hasOwn(Object(conditions), 'module'))

/**
 * Builds an ES module of each source file, for the condition `module` of `exports`: bundlers know it, and Node does not. In
 * files of their own, bundlers leave out what nothing uses, also where they cannot tell whether it would do anything.
 *
 * @param {string} folder
 * @param {string} dist
 * @param {Manifest} manifest
 * @param {Entry[]} entries
 * @param {string[]} sources
 */
async function buildModules(folder, dist, manifest, entries, sources) {
  const outdir = join(dist, 'module')
  await build({
    ...commonOptions(folder, manifest),
    entryPoints: sources,
    outbase: 'src',
    outdir,
    format: 'esm',
    ...whitespaceFor(entries),
    plugins: [scriptsApart()],
  })
  for (const file of readdirSync(outdir, { recursive: true, encoding: 'utf8' })) {
    if (!file.endsWith('.js')) continue
    const path = join(outdir, file)
    const text = readFileSync(path, 'utf8')
    writeFileSync(path, isLarge(entries) ? await shortenNames(text, true) : withWholeTexts(text))
  }
}

/**
 * @param {string} folder
 * @param {Manifest} manifest
 * @returns {import('esbuild').BuildOptions}
 */
function commonOptions(folder, { engines }) {
  return {
    absWorkingDir: folder,
    platform: 'node',
    target: `node${engines.node.replace('>=', '')}`,
    minifySyntax: true,
    logLevel: 'warning',
  }
}

/**
 * The files by which the program is loaded.
 *
 * @param {string} dist
 * @param {string} entry
 * @param {string} file
 */
function writeFaces(dist, entry, file = 'program.cjs') {
  const face = join(dist, `${entry}.cjs`)
  // Node searches an imported CommonJS file for its exports, and every file that it re-exports by a plain `module.exports =
  // require(…)`. For the whole program that takes three times as long as to run it.
  writeFileSync(
    face,
    `'use strict'
const program = require('./${file}')

module.exports = program['${entry}']
`,
  )
  const names = Object.keys(createRequire(face)(face)).sort()
  writeFileSync(
    join(dist, `${entry}.js`),
    `import entry from './${entry}.cjs'\n\nexport const { ${names.join(', ')} } = entry\n`,
  )
}

/**
 * One set of declarations for both module systems: those of CommonJS, which is what runs. Two sets would make two classes
 * of each, which TypeScript does not take for one another.
 *
 * @param {string} folder of the package
 * @param {string} dist
 * @param {Entry[]} entries
 */
async function writeDeclarations(folder, dist, entries) {
  const types = join(dist, 'types')
  mkdirSync(types, { recursive: true })
  for (const file of readdirSync(types, { recursive: true, encoding: 'utf8' })) {
    const path = join(types, file)
    if (file.endsWith('.d.ts')) writeFileSync(path, withUndefined(readFileSync(path, 'utf8')))
  }
  const faces = entries.map((entry) => exportsOf(types, entry))
  if (isLarge(entries)) await rollUp(folder, types, entries)
  for (const [i, { name }] of entries.entries()) {
    const face = isLarge(entries)
      ? String(faces[i]).replace(/'\.\/types\/[^']*'/g, `'./types/${ROLLED}.js'`)
      : String(faces[i])
    for (const ending of ['d.ts', 'd.cts']) writeFileSync(join(dist, `${name}.${ending}`), face)
  }
  removeUnreachable(dist, namesOf(entries))
  writeFileSync(join(types, 'package.json'), '{ "type": "commonjs" }\n')
}

/**
 * Whether it is worth ten seconds of computing to have a package downloaded that is a fifth smaller: the core, and the console.
 *
 * @param {Entry[]} entries
 */
const isLarge = (entries) => entries.some(({ name }) => name === 'internal')

/** @param {Entry[]} entries */
const namesOf = (entries) => entries.map(({ name }) => name)

/**
 * The exports of an entry, `export { … } from './types/…'`, as seen from the folder of all entries.
 *
 * @param {string} types
 * @param {Entry} entry
 */
function exportsOf(types, entry) {
  const module = moduleOf(entry)
  const text = readFileSync(join(types, `${module}.d.ts`), 'utf8')
  return text.replace(/'(\.[^']*)'/g, (_, specifier) => `'./${posix.join('types', posix.dirname(module), specifier)}'`)
}

/** The file with all declarations of a large package. */
const ROLLED = 'declarations'

/**
 * Puts all declarations that users meet into one file, which is a third less to download.
 *
 * @param {string} folder of the package
 * @param {string} types
 * @param {Entry[]} entries
 */
async function rollUp(folder, types, entries) {
  const all = join(types, 'all.d.ts')
  writeFileSync(all, entries.map((entry) => `export * from './${moduleOf(entry)}.js'\n`).join(''))
  const rolled = join(types, `${ROLLED}.d.ts`)
  // Loading it takes half a second, for each package.
  const { extract } = await import('./lib/api-extractor.js')
  extract(folder, all, { dtsRollup: { enabled: true, untrimmedFilePath: rolled } })
  writeFileSync(rolled, withAugmentations(readFileSync(rolled, 'utf8'), augmentationsIn(types)))
}

await whenStarted(import.meta.url, () => buildPackage(process.cwd()))
