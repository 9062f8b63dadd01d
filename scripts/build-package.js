// Builds the package in the current folder into dist/: node ../../scripts/build-package.js
//
// CommonJS is the program, one file for all entries; everything else re-exports it. A process that loads a package by
// `import` in one place and by `require` in another (Jest, a CommonJS plugin), or by several entries, therefore has one
// copy of every class, and one state.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { build } from 'esbuild'
import { removeUnreachable } from './lib/declarations.js'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'
import { scriptsApart } from './lib/scripts-apart.js'

/** @typedef {{ name: string, source: string }} Entry `http` and `src/http/index.ts` of `@sluice/core/http` */

/**
 * The entries that users import, by the package's `exports`; the main one is called `index`.
 *
 * @param {{ exports: Record<string, unknown> }} manifest
 * @returns {Entry[]}
 */
export function entriesOf({ exports }) {
  return Object.entries(exports).flatMap(([path, conditions]) => {
    const source = /** @type {Record<string, string> | string} */ (conditions)
    if (typeof source === 'string') return []
    return [{ name: path === '.' ? 'index' : path.slice(2), source: String(source['@sluice/source']).slice(2) }]
  })
}

/**
 * An entry's module, without ending: `http/index`.
 *
 * @param {Entry} entry
 */
export function moduleOf({ source }) {
  return source.replace(/^src\//, '').replace(/\.ts$/, '')
}

/**
 * @param {string} folder of the package
 */
export async function buildPackage(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const dist = join(folder, 'dist')
  const entries = entriesOf(manifest)
  rmSync(dist, { recursive: true, force: true })

  await buildProgram(folder, dist, manifest, entries)
  for (const { name } of entries) writeFaces(dist, name)
  await run('tsc', ['-p', 'tsconfig.json'], { cwd: folder })
  writeDeclarations(dist, entries)
  if (ADAPTERS.includes(manifest.name)) writeErrors(dist)
}

/** Adapters, the packages that users install, hold what explains warnings and errors. */
const ADAPTERS = ['@sluice/express', '@sluice/fastify', '@sluice/koa']

/**
 * Warnings refer to it. Its links to other pages lead nowhere from there, so their texts stay alone.
 *
 * @param {string} dist
 */
function writeErrors(dist) {
  const page = readFileSync(join(root, 'docs/errors.md'), 'utf8')
  writeFileSync(join(dist, 'ERRORS.md'), page.replace(/\[([^\]]+)\]\((?!https?:|#)[^)]*\)/g, '$1'))
}

/**
 * @param {string} folder
 * @param {string} dist
 * @param {{ engines: { node: string } }} manifest
 * @param {Entry[]} entries
 */
async function buildProgram(folder, dist, manifest, entries) {
  await build({
    absWorkingDir: folder,
    stdin: {
      contents: entries.map(({ name, source }) => `export * as ${name} from './${source}'`).join('\n'),
      resolveDir: folder,
    },
    outfile: join(dist, 'program.cjs'),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: `node${manifest.engines.node.replace('>=', '')}`,
    // What is installed beside it stays one copy, shared with everything else that uses it.
    packages: 'external',
    plugins: [scriptsApart(dist)],
    // A fifth less to download. Names stay for stack traces, and lines stay short enough to be shown there.
    minifyWhitespace: true,
    lineLimit: 160,
    logLevel: 'warning',
  })
}

/**
 * The files by which the program is loaded.
 *
 * @param {string} dist
 * @param {string} entry
 */
function writeFaces(dist, entry) {
  const face = join(dist, `${entry}.cjs`)
  // Node searches a CommonJS file that is imported for its exports, and every file that it re-exports by a plain
  // `module.exports = require(…)`: for the whole program that takes three times as long as to run it.
  writeFileSync(
    face,
    `'use strict'
const { ${entry} } = require('./program.cjs')

module.exports = ${entry}
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
 * @param {string} dist
 * @param {Entry[]} entries
 */
function writeDeclarations(dist, entries) {
  const types = join(dist, 'types')
  mkdirSync(types, { recursive: true })
  removeUnreachable(types, entries.map(moduleOf))
  writeFileSync(join(types, 'package.json'), '{ "type": "commonjs" }\n')
  for (const entry of entries) {
    for (const ending of ['d.ts', 'd.cts']) {
      writeFileSync(join(dist, `${entry.name}.${ending}`), `export * from './types/${moduleOf(entry)}.js'\n`)
    }
  }
}

await whenStarted(import.meta.url, () => buildPackage(process.cwd()))
