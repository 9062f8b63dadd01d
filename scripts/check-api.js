// Compares the exports of packages, with types and documentation, with the reports in etc/, so that no change goes unnoticed:
// node scripts/check-api.js [--update]. Needs a build before.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { extract, read } from './lib/api-extractor.js'
import { entriesOf } from './lib/entries.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

const REPORTS = join(root, 'etc')
/** The entry of our own packages alone, which semver does not cover. */
const INTERNAL = 'internal'

/**
 * The declarations of an entry that are its package's own.
 *
 * @param {string} folder of the package
 * @param {string} entry
 * @returns {string} the path of a file that exports them
 */
function ownDeclarations(folder, entry) {
  const text = readFileSync(join(folder, 'dist', `${entry}.d.cts`), 'utf8')
  // Re-exports from the core are in the core's report, and API Extractor cannot follow them over an augmented interface.
  const own = text.replace(/^export \* from '@sluice\/core';$/m, '')
  // Not in dist/, which may be packed at this moment.
  mkdirSync(join(folder, '.tmp'), { recursive: true })
  const file = join(folder, '.tmp', `${entry}-own.d.cts`)
  writeFileSync(file, own.replaceAll("'./", "'../dist/"))
  return file
}

await whenStarted(import.meta.url, () => {
  const isUpdate = process.argv.includes('--update')
  mkdirSync(REPORTS, { recursive: true })
  const entries = readdirSync(join(root, 'packages'))
    .sort()
    .flatMap((name) => {
      const folder = join(root, 'packages', name)
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
      return entriesOf(manifest)
        .filter(({ name }) => name !== INTERNAL)
        .map((entry) => ({
          name,
          folder,
          entry: entry.name,
          title: `${manifest.name} (${entry.name})`,
        }))
    })
  const own = entries.map(({ folder, entry }) => ownDeclarations(folder, entry))
  const compilerState = read(root, own)
  const changed = entries.filter(({ name, folder, entry }, i) => {
    const reportFileName = entry === 'index' ? name : `${name}-${entry}`
    const apiReport = { enabled: true, reportFileName, reportFolder: REPORTS, reportTempFolder: join(root, '.tmp/api') }
    const isChanged = extract(folder, String(own[i]), { isUpdate, compilerState, apiReport })
    return isChanged && !isUpdate
  })
  if (changed.length > 0) {
    const titles = changed.map(({ title }) => title)
    throw new Error(
      `The exports of these have changed: ${titles.join(', ')}. Compare etc/ with .tmp/api/; if it is meant, npm run check:api -- --update`,
    )
  }
  console.log(isUpdate ? 'etc/ is written anew' : 'the packages export what etc/ says')
})
