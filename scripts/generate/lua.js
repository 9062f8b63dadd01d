// Embeds the Redis scripts of lua/ in the core, and that of learned quotas in the package that uses it.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import {
  cellKindsOf,
  impurities,
  kindScripts,
  piecesOf,
  requireDeclared,
  scriptsOf,
  sharedConstants,
  sourceIn,
} from '@sluice/lua-optimiser'
import { root } from '../lib/project.js'
import { withThrowawayRedis } from '../lib/throwaway-redis.js'

/** @typedef {{ name: string, sha1: string, source: string }} Script */
/** @typedef {ReturnType<typeof cellKindsOf>[number]} CellKind */

const luaFolder = join(root, 'lua')
const lua = sourceIn(luaFolder)
const TARGET = 'packages/core/src/redis/scripts/scripts.generated.ts'
/** Scripts of other packages, which the core does without. */
const OF_PACKAGES = { quota: 'packages/fetch/src/learned/script.generated.ts' }

/**
 * The TypeScript module that holds the scripts, and all that the store has to know of how they are made.
 *
 * @param {Script[]} scripts
 * @param {CellKind[]} kinds
 * @param {ReturnType<typeof sharedConstants>} shared
 * @returns {string}
 */
export function renderModule(scripts, kinds, { ops, flags, outcomes }) {
  const isCut = (/** @type {Script} */ { name }) => /^(decide|one)\b/.test(name)
  const cut = scripts.filter(isCut)
  const parts = [
    HEADER,
    list(
      'KINDS',
      kinds.map(({ name }) => name),
      'Kinds of cells, in the order of the numbers by which decide.lua knows them, from 1.',
    ),
    list(
      'TOGETHER_KINDS',
      kinds.filter(({ goesTogether }) => goesTogether).map(({ name }) => name),
      'Those of which equal decisions on one key are made at once.',
    ),
    renderCalls(kinds),
    `// Added to the op of decisions: see decide.lua.\n${constants(flags)}`,
    `// The first byte of what a decision says: see decide.lua.\n${constants(outcomes)}`,
    [
      '// Ops are sent as they are. This does not compile where decide.lua has other numbers for them than the port.',
      `;({ ${pairs(ops)} }) satisfies Partial<typeof import('../../store/store.js')>`,
    ].join('\n'),
    ...(cut.length > 0 ? renderPieces(cut, kinds) : []),
    ...scripts.filter((script) => !isCut(script)).map((script) => renderScript(script)),
  ]
  return `${parts.join('\n\n')}\n`
}

const GENERATED = '// Generated from lua/ by `npm run generate`. Do not edit: change the Lua and run that again.'

const HEADER = `${GENERATED}

/** A script for Redis, and the name EVALSHA knows it by. */
export interface LuaScript {
  readonly name: string
  /** Of exactly \`source\`, 40 hexadecimal digits. */
  readonly sha1: string
  readonly source: string
}`

const PIECE = `/** A part of a script that some batches do not need. */
export interface Piece {
  readonly sections: readonly Section[]
  readonly source: string
}

/** A script in the order of its lines. A piece is left out where one of the sections that it stands in is not needed. */
export interface CutScript {
  readonly name: string
  readonly pieces: readonly Piece[]
}

/** A script for cells of one kind. */
export interface KindScript extends CutScript {
  readonly kind: (typeof KINDS)[number]
  /** For cells that several limits share. */
  readonly isShared: boolean
  /** For several cells under one key. */
  readonly isJoint: boolean
}`

/**
 * @param {string} constant
 * @param {readonly string[]} words
 * @param {string} comment
 */
function list(constant, words, comment) {
  const values = words.map((word) => `'${word}'`).join(', ')
  return `/** ${comment} */\nexport const ${constant} = [${values}] as const`
}

/** @param {Readonly<Record<string, number>>} numbers by name */
function constants(numbers) {
  const entries = Object.entries(numbers)
  return entries.map(([name, value]) => `export const ${name} = ${value}`).join('\n')
}

/** @param {Readonly<Record<string, number>>} numbers by name */
function pairs(numbers) {
  return Object.entries(numbers)
    .map(([name, value]) => `${name}: ${value}`)
    .join(', ')
}

/** A template literal keeps one Lua line on one line, so a change can be read in a diff. @param {string} source */
function literal(source) {
  return `\`${source.replace(/[\\`]|\$(?=\{)/g, '\\$&')}\``
}

/** @param {string} name of a script */
function constantOf(name) {
  return `${name.replace(/-+(\w)/g, (_, letter) => letter.toUpperCase())}Script`
}

/**
 * The commands that each kind calls beside those of every kind.
 *
 * @param {readonly CellKind[]} kinds
 */
function renderCalls(kinds) {
  const words = (/** @type {readonly string[]} */ call) => `[${call.map((word) => `'${word}'`).join(', ')}]`
  return [
    '/** Commands that cells of a kind call beside those that all kinds call, with the words after the key. */',
    'export const KIND_CALLS: Readonly<Record<(typeof KINDS)[number], readonly (readonly [string, ...string[]])[]>> = {',
    ...kinds.map(({ name, calls }) => `  ${name}: [${calls.map(words).join(', ')}],`),
    '}',
  ].join('\n')
}

/** @param {Script} [script] */
function renderScriptModule(script) {
  if (!script) throw new Error('expected a script for each package that has one')
  const type = "import type { StoreScript } from '@sluice/core/internal'"
  return `${[GENERATED, type, '', renderScript(script, 'StoreScript & { readonly name: string }')].join('\n')}\n`
}

/** @param {Script} script @param {string} [type] */
function renderScript({ name, sha1, source }, type = 'LuaScript') {
  return [
    `export const ${constantOf(name)}: ${type} = {`,
    `  name: '${name}',`,
    `  sha1: '${sha1}',`,
    `  source: ${literal(source)},`,
    '}',
  ].join('\n')
}

/**
 * `decide` and the scripts for one kind of cell, in pieces.
 *
 * @param {Script[]} scripts
 * @param {CellKind[]} kinds
 */
function renderPieces(scripts, kinds) {
  const pieces = new Map(scripts.map(({ name, source }) => [name, piecesOf(source)]))
  const all = [...pieces.values()].flat()
  const sections = [...new Set(all.flatMap((piece) => piece.sections))].sort()
  // A piece that several scripts have is written once.
  const texts = all.map(renderPiece)
  const common = [...new Set(texts)].filter((text) => texts.indexOf(text) < texts.lastIndexOf(text))
  const nameOf = new Map(common.map((text, i) => [text, `piece${i + 1}`]))
  const cut = (/** @type {string} */ name, use = '') => [
    `{ name: '${name}',${use} pieces: [`,
    ...(pieces.get(name) ?? []).map(renderPiece).map((text) => `  ${nameOf.get(text) ?? text},`),
    '] }',
  ]
  /** @param {string} constant @param {'decide' | 'one'} decides @param {string} comment */
  const listOf = (constant, decides, comment) => [
    `/** ${comment} */`,
    `export const ${constant}: readonly KindScript[] = [`,
    ...kindScripts(kinds, decides).map(({ kind, script: { name, isShared, isJoint } }) => {
      const lines = cut(name, ` kind: '${kind.name}', isShared: ${isShared}, isJoint: ${isJoint},`)
      return `${lines.join('\n')},`
    }),
    ']',
  ]
  return [
    PIECE,
    `export type Section = ${sections.map((section) => `'${section}'`).join(' | ')}`,
    [...nameOf].map(([text, name]) => `const ${name}: Piece = ${text}`).join('\n'),
    `export const DECIDE: CutScript = ${cut('decide').join('\n')}`,
    ...[
      listOf(
        'UNIFORM_SCRIPTS',
        'decide',
        'Scripts for batches whose plans have one cell each, all of one kind, and which give nothing back.',
      ),
      listOf(
        'ONE_SCRIPTS',
        'one',
        'Scripts for one charge of one cell, but for the line that declares its parameters.',
      ),
    ].map((lines) => lines.join('\n')),
  ]
}

/** @param {ReturnType<typeof piecesOf>[number]} piece */
function renderPiece({ sections, source }) {
  return `{ sections: [${sections.map((section) => `'${section}'`).join(', ')}], source: ${literal(source)} }`
}

/**
 * @param {string} name
 * @param {string} source
 * @returns {Script}
 */
export function scriptOf(name, source) {
  return { name, sha1: createHash('sha1').update(source).digest('hex'), source }
}

/** @param {string} folder relative to lua/; '' for its top level */
function luaNames(folder) {
  const path = join(luaFolder, folder)
  if (!existsSync(path)) return []
  const files = readdirSync(path).filter((file) => file.endsWith('.lua'))
  return files.map((file) => join(folder, file.slice(0, -'.lua'.length))).sort()
}

/**
 * Only Redis itself knows whether it can compile a script, and under which name it then keeps it.
 *
 * @param {Script[]} scripts
 * @returns {Promise<string[]>}
 */
export function refusedByRedis(scripts) {
  return withThrowawayRedis(async (redisCli) => {
    /** @type {string[]} */
    const problems = []
    for (const { name, sha1, source } of scripts) {
      const reply = await redisCli(['-x', 'SCRIPT', 'LOAD'], source)
      if (reply !== sha1) problems.push(`${name}: Redis says: ${reply}`)
    }
    return problems
  })
}

/** @returns {Script[]} */
function scripts() {
  const all = Object.entries(scriptsOf(lua)).map(([name, source]) => scriptOf(name, source))
  for (const { name, source } of all) requireDeclared(name, source)
  return all
}

export function make() {
  const all = scripts()
  const ofCore = all.filter(({ name }) => !Object.hasOwn(OF_PACKAGES, name))
  const ofPackages = Object.entries(OF_PACKAGES).map(([name, file]) => [
    file,
    renderScriptModule(all.find((script) => script.name === name)),
  ])
  return { [TARGET]: renderModule(ofCore, cellKindsOf(lua), sharedConstants(lua)), ...Object.fromEntries(ofPackages) }
}

/**
 * Kernels that are impure, and scripts that Redis refuses.
 *
 * @param {boolean} withRedis
 */
export async function problems(withRedis) {
  const impure = [...luaNames('kernels'), ...luaNames('cells')].flatMap((name) =>
    impurities(name, lua.read(name) ?? ''),
  )
  return impure.length > 0 || !withRedis ? impure : refusedByRedis(scripts())
}
