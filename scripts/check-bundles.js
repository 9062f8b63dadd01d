// `npm run check:bundles`: compares the sizes of bundles of one limiter with those in etc/bundles.json. Needs a build before.
// After an intended change: npm run check:bundles -- --update. `-- --files 'Express, in memory'` lists the files of a bundle.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { bundle, PROGRAMS } from './lib/bundle.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

const FILE = join(root, 'etc/bundles.json')
/** The share by which a bundle may grow or shrink unnoticed. */
const TOLERANCE = 0.05

/**
 * @param {Record<string, number>} bytes by program
 * @param {Record<string, number>} known
 * @returns {string[]} the bundles that differ
 */
export function problemsOfBundles(bytes, known) {
  return Object.entries(bytes).flatMap(([name, now]) => {
    const before = known[name] ?? 0
    if (Math.abs(now - before) <= before * TOLERANCE) return []
    return [`${name}: ${now} bytes, more than 5 % from ${before}`]
  })
}

/** Kinds of cells, calendars and holders of permits, which a plain limit in memory does not use. */
const OTHER_KINDS = /[\\/](?:kinds[\\/](?:bucket|concurrency|counter|calendar|all)|charging[\\/]permits)\b/

/**
 * @param {string} name of a program of one plain limit
 * @param {Record<string, number>} inputs the bytes of each file in its bundle
 * @returns {string[]} the kinds of cells that it brings in vain
 */
export function problemsOfKinds(name, inputs) {
  if (!name.endsWith('in memory')) return []
  const files = Object.keys(inputs).filter((file) => inputs[file] !== 0 && OTHER_KINDS.test(file))
  return files.map((file) => `${name}: ${file} is in the bundle, though no limit needs it`)
}

/** @param {string} program */
async function list(program) {
  const { inputs } = await bundle(program)
  const sorted = Object.entries(inputs).sort(([, a], [, b]) => b - a)
  for (const [file, bytes] of sorted) if (bytes > 0) console.log(`${bytes} ${file}`)
}

await whenStarted(import.meta.url, async () => {
  const { values } = parseArgs({ options: { update: { type: 'boolean' }, files: { type: 'string' } } })
  const programs = /** @type {Record<string, string>} */ (PROGRAMS)
  if (values.files !== undefined) return list(String(programs[values.files]))
  /** @type {Record<string, number>} */
  const bytes = {}
  /** @type {string[]} */
  const inVain = []
  for (const [name, program] of Object.entries(programs)) {
    const made = await bundle(program)
    bytes[name] = made.bytes
    inVain.push(...problemsOfKinds(name, made.inputs))
  }
  if (inVain.length > 0) throw new Error(inVain.join('\n'))
  if (values.update) writeFileSync(FILE, `${JSON.stringify(bytes, null, 2)}\n`)
  const problems = problemsOfBundles(bytes, JSON.parse(readFileSync(FILE, 'utf8')))
  if (problems.length > 0) {
    const hint =
      'npm run check:bundles -- --files <name> lists its files; if it is meant, npm run check:bundles -- --update'
    throw new Error([...problems, hint].join('\n'))
  }
  for (const [name, size] of Object.entries(bytes)) console.log(`${name}: ${size} bytes`)
})
