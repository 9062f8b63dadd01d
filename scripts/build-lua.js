// Embeds the Redis scripts of lua/ in the core: node scripts/build-lua.js [--check]
// --check writes nothing; it fails when the embedded scripts are stale, a kernel is impure, or Redis refuses a script.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { impurities } from './lib/lua.js'
import { KINDS, scriptsOf, TOGETHER } from './lib/lua-scripts.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'
import { withThrowawayRedis } from './lib/throwaway-redis.js'

/** @typedef {{ name: string, sha1: string, source: string }} Script */

const luaFolder = join(root, 'lua')
const target = join(root, 'packages/core/src/redis/scripts/scripts.generated.ts')

/**
 * The TypeScript module that holds the scripts, and what the store has to know of how they are made.
 *
 * @param {Script[]} scripts
 * @returns {string}
 */
export function renderModule(scripts) {
  const header = [
    '// Generated from lua/ by `npm run build:lua`. Do not edit: change the Lua and run that again.',
    '',
    '/** A script for Redis, and the name EVALSHA knows it by. */',
    'export interface LuaScript {',
    '  readonly name: string',
    '  /** Of exactly `source`, 40 hexadecimal digits. */',
    '  readonly sha1: string',
    '  readonly source: string',
    '}',
    '',
    ...list('KINDS', KINDS, 'Kinds of cells, in the order of the numbers by which decide.lua knows them, from 1.'),
    '',
    ...list('TOGETHER_KINDS', TOGETHER, 'Those of which equal decisions on one key are made at once.'),
  ].join('\n')
  return `${[header, ...scripts.map(renderScript)].join('\n\n')}\n`
}

/**
 * @param {string} constant
 * @param {readonly string[]} words
 * @param {string} comment
 */
function list(constant, words, comment) {
  return [`/** ${comment} */`, `export const ${constant} = [${words.map((word) => `'${word}'`).join(', ')}] as const`]
}

/** @param {Script} script */
function renderScript({ name, sha1, source }) {
  const constant = `${name.replace(/-+(\w)/g, (_, letter) => letter.toUpperCase())}Script`
  // A template literal keeps one Lua line on one line, so a change can be read in a diff.
  const literal = source.replace(/[\\`]|\$(?=\{)/g, '\\$&')
  return [
    `export const ${constant}: LuaScript = {`,
    `  name: '${name}',`,
    `  sha1: '${sha1}',`,
    `  source: \`${literal}\`,`,
    '}',
  ].join('\n')
}

/**
 * @param {string} name
 * @param {string} source
 * @returns {Script}
 */
export function scriptOf(name, source) {
  return { name, sha1: createHash('sha1').update(source).digest('hex'), source }
}

/** @type {import('./lib/lua.js').ReadSource} */
function readLua(name) {
  const file = join(luaFolder, `${name}.lua`)
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

/** @param {string} folder relative to lua/; '' for its top level */
function luaNames(folder) {
  const path = join(luaFolder, folder)
  if (!existsSync(path)) return []
  const files = readdirSync(path).filter((file) => file.endsWith('.lua'))
  return files.map((file) => join(folder, file.slice(0, -'.lua'.length))).sort()
}

/**
 * @param {Script[]} scripts
 * @param {string} module
 */
async function check(scripts, module) {
  const problems = luaNames('kernels').flatMap((name) => impurities(name, readLua(name) ?? ''))
  const current = existsSync(target) ? readFileSync(target, 'utf8') : undefined
  if (current !== module) problems.push(`${relative(root, target)} is stale; run: npm run build:lua`)
  if (problems.length === 0) problems.push(...(await refusedByRedis(scripts)))
  if (problems.length > 0) throw new Error(problems.join('\n'))
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

await whenStarted(import.meta.url, async () => {
  const scripts = Object.entries(scriptsOf(readLua)).map(([name, source]) => scriptOf(name, source))
  const module = renderModule(scripts)
  if (process.argv.includes('--check')) {
    await check(scripts, module)
  } else {
    mkdirSync(dirname(target), { recursive: true })
    writeFileSync(target, module)
  }
  for (const { name, sha1, source } of scripts) console.log(`${name}: ${source.length} bytes, sha1 ${sha1}`)
})
