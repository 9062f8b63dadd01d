// `npm run generate`: writes the files, and the parts of pages, that are made of others; `-- lua threads` only these. With --check it
// writes nothing, and fails if one is stale or its source is wrong. --no-redis leaves out the check by Redis.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as figures from './generate/figures.js'
import * as lua from './generate/lua.js'
import * as pairs from './generate/pairs.js'
import * as published from './generate/published.js'
import * as sql from './generate/sql.js'
import * as threads from './generate/threads.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

/**
 * @typedef {object} Generator
 * @property {() => Record<string, string> | Promise<Record<string, string>>} make texts by their files, from the root
 * @property {(withRedis: boolean) => Promise<string[]>} [problems] of what they are made of
 */

/** @type {Record<string, Generator>} the later ones read what the former have written */
const GENERATORS = { threads, sql, lua, figures, pairs, published }

await whenStarted(import.meta.url, async () => {
  const options = process.argv.slice(2).filter((word) => word.startsWith('--'))
  const names = process.argv.slice(2).filter((word) => !word.startsWith('--'))
  const unknown = [
    ...options.filter((option) => !['--check', '--no-redis'].includes(option)),
    ...names.filter((name) => !Object.hasOwn(GENERATORS, name)),
  ]
  if (unknown.length > 0) {
    throw new Error(`expected ${Object.keys(GENERATORS).join(', ')}, --check, --no-redis; got ${unknown.join(', ')}`)
  }
  const isCheck = options.includes('--check')
  const problems = []
  for (const [name, { make, problems: problemsOfSource }] of Object.entries(GENERATORS)) {
    if (names.length > 0 && !names.includes(name)) continue
    const files = Object.entries(await make())
    for (const [file, text] of files) {
      const path = join(root, file)
      if (existsSync(path) && readFileSync(path, 'utf8') === text) continue
      if (isCheck) problems.push(`${file} is stale; run: npm run generate -- ${name}`)
      else writeFileSync(path, text)
    }
    if (isCheck) problems.push(...((await problemsOfSource?.(!options.includes('--no-redis'))) ?? []))
    console.log(`${name}: ${files.length} files`)
  }
  if (problems.length > 0) throw new Error(problems.join('\n'))
})
