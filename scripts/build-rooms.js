// `npm run build:rooms`: makes the rules of biome.json that say which folder may import which, from lib/rooms.js. All else in biome.json
// is written by hand. With --check it only looks whether they are up to date.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { root } from './lib/project.js'
import { OUTSIDE, ROOMS } from './lib/rooms.js'
import { run, whenStarted } from './lib/run.js'

/** @typedef {{ group: string[], message: string }} Pattern of imports that are an error */

const CONFIG = join(root, 'biome.json')

/** Files of packages import what their package.json has. */
const DECLARED = {
  includes: ['packages/*/src/**'],
  linter: {
    rules: {
      correctness: {
        noUndeclaredDependencies: {
          level: 'error',
          options: { devDependencies: false, peerDependencies: true, optionalDependencies: false },
        },
      },
    },
  },
}

/** @param {string} files @param {Pattern[]} patterns */
const ruleFor = (files, patterns) => ({
  includes: [files],
  linter: { rules: { style: { noRestrictedImports: { level: 'error', options: { patterns } } } } },
})

/** @param {string} name of a package @returns {Pattern[]} */
function outside(name) {
  const { only, never, why } = OUTSIDE[name] ?? { why: '' }
  if (only) {
    return [
      { group: ['**', '!./**', '!../**', '!node:*', '!node:*/**', ...only.map((one) => `!${one}`)], message: why },
    ]
  }
  return never ? [{ group: never.flatMap((one) => [one, `${one}/**`]), message: why }] : []
}

/**
 * The rules of the rooms in a folder. Those of a room within another repeat what holds for that: of several rules for a file, Biome
 * takes the last.
 *
 * @param {string} folder
 * @param {import('./lib/rooms.js').Rooms} table
 * @param {Pattern[]} above
 * @returns {object[]}
 */
export function rulesOf(folder, { rooms, inner = {}, isBelow = false, entries = [], pure = [] }, above) {
  const all = [...Object.keys(rooms), ...entries]
  return Object.entries(rooms).flatMap(([room, allowed]) => {
    const within = `${folder}/${room}`
    if (pure.includes(room)) {
      const message = `${room}/ is pure: its files import nothing but each other.`
      return [ruleFor(`${within}/**`, [{ group: ['**', '!./*'], message }])]
    }
    const unknown = allowed.filter((other) => !(other in rooms))
    if (unknown.length > 0) throw new Error(`${folder}/${room}: there is no room ${unknown.join(', ')} beside it`)
    const others = all.filter((other) => other !== room && !allowed.includes(other))
    const message = `${room}/ may import from these other folders in ${basename(folder)}/: ${allowed.join(', ') || 'none'}.`
    /** @param {string} up from a file to those beside the rooms @returns {Pattern[]} */
    const patterns = (up) => {
      const group = [...(isBelow ? [`${up}*.js`] : []), ...(others.length > 0 ? [`**/{${others.join(',')}}/**`] : [])]
      return group.length > 0 ? [...above, { group, message }] : above
    }
    const innerRules = inner[room] ? rulesOf(within, inner[room], patterns('../../')) : []
    return [ruleFor(`${within}/**`, patterns('../')), ...innerRules]
  })
}

/** @param {string} name of a package */
function rulesOfPackage(name) {
  const src = `packages/${name}/src`
  const above = outside(name)
  const table = ROOMS[name]
  const rules = above.length > 0 ? [ruleFor(`${src}/**`, above)] : []
  if (!table) return rules
  checkAllKnown(src, table)
  return [...rules, ...rulesOf(src, table, above)]
}

/**
 * Throws for a folder that a table does not name, also in rooms within rooms.
 *
 * @param {string} folder
 * @param {import('./lib/rooms.js').Rooms} table
 */
function checkAllKnown(folder, { rooms, inner = {}, entries = [] }) {
  const known = [...Object.keys(rooms), ...entries]
  const folders = readdirSync(join(root, folder), { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const missing = folders.map((entry) => entry.name).filter((name) => !known.includes(name))
  if (missing.length > 0)
    throw new Error(`${folder}: scripts/lib/rooms.js does not say what ${missing.join(', ')} may import`)
  for (const [room, table] of Object.entries(inner)) checkAllKnown(`${folder}/${room}`, table)
}

await whenStarted(import.meta.url, async () => {
  const config = JSON.parse(readFileSync(CONFIG, 'utf8'))
  const overrides = [DECLARED, ...readdirSync(join(root, 'packages')).sort().flatMap(rulesOfPackage)]
  if (process.argv.includes('--check')) {
    if (!isDeepStrictEqual(config.overrides, overrides))
      throw new Error('biome.json is stale; run: npm run build:rooms')
  } else {
    writeFileSync(CONFIG, `${JSON.stringify({ ...config, overrides }, null, 2)}\n`)
    await run('biome', ['format', '--write', CONFIG], { quiet: true })
  }
  console.log(`biome.json: ${overrides.length} rules`)
})
