// Compares the exports of packages, with types and documentation, with the reports in etc/, so that no change goes unnoticed:
// node scripts/check-api.js [--update]. Needs a build before.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { extract } from './lib/api-extractor.js'
import { entriesOf } from './lib/entries.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

const REPORTS = join(root, 'etc')

/**
 * Compares the report of one entry, or writes it.
 *
 * @param {string} name of the package, without the scope
 * @param {import('./lib/entries.js').Entry} entry
 * @param {boolean} isUpdate
 * @returns {boolean} whether nothing differs, or it has been written
 */
function report(name, entry, isUpdate) {
  const folder = join(root, 'packages', name)
  const text = readFileSync(join(folder, 'dist', `${entry.name}.d.cts`), 'utf8')
  // Re-exports from the core are in the core's report, and API Extractor cannot follow them over an augmented interface.
  const own = text.replace(/^export \* from '@sluice\/core';$/m, '')
  // Not in dist/, which may be packed at this moment.
  mkdirSync(join(folder, '.tmp'), { recursive: true })
  const file = join(folder, '.tmp', `${entry.name}-own.d.cts`)
  writeFileSync(file, own.replaceAll("'./", "'../dist/"))
  return reportOf(name, entry.name, file, isUpdate)
}

/**
 * @param {string} name
 * @param {string} entry
 * @param {string} file
 * @param {boolean} isUpdate
 */
function reportOf(name, entry, file, isUpdate) {
  const folder = join(root, 'packages', name)
  const reportFileName = entry === 'index' ? name : `${name}-${entry}`
  const reportTempFolder = join(root, '.tmp/api')
  const apiReport = { enabled: true, reportFileName, reportFolder: REPORTS, reportTempFolder }
  return !extract(folder, file, { isUpdate, apiReport }) || isUpdate
}

await whenStarted(import.meta.url, () => {
  const isUpdate = process.argv.includes('--update')
  mkdirSync(REPORTS, { recursive: true })
  const changed = []
  for (const name of readdirSync(join(root, 'packages')).sort()) {
    const manifest = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'))
    for (const entry of entriesOf(manifest)) {
      if (!report(name, entry, isUpdate)) changed.push(`${manifest.name} (${entry.name})`)
    }
  }
  if (changed.length > 0) {
    throw new Error(
      `The exports of these have changed: ${changed.join(', ')}. Compare etc/ with .tmp/api/; if it is meant, npm run check:api -- --update`,
    )
  }
  console.log(isUpdate ? 'etc/ is written anew' : 'the packages export what etc/ says')
})
