// Compares what packages export, with its types and documentation, with the reports in etc/, so that no change of it goes
// unnoticed: node scripts/check-api.js [--update]. Needs a build before.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'
import { entriesOf, moduleOf } from './build-package.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

const REPORTS = join(root, 'etc')

/**
 * Compares the report of one entry, or writes it.
 *
 * @param {string} name of the package, without the scope
 * @param {import('./build-package.js').Entry} entry
 * @param {boolean} isUpdate
 * @returns {boolean} whether nothing differs, or it has been written
 */
function report(name, entry, isUpdate) {
  const types = join(root, 'packages', name, 'dist/types')
  const text = readFileSync(join(types, `${moduleOf(entry)}.d.ts`), 'utf8')
  // What is re-exported from the core is in the core's report, and API Extractor cannot follow it over an augmented interface.
  const own = join(types, `${moduleOf(entry)}-own.d.ts`)
  writeFileSync(own, text.replace(/^export \* from '@sluice\/core';$/m, ''))
  try {
    return reportOf(name, entry.name, own, isUpdate)
  } finally {
    rmSync(own)
  }
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
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: file,
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            target: 'es2022',
            lib: ['es2023'],
            types: ['node'],
            module: 'node16',
            moduleResolution: 'node16',
            strict: true,
            skipLibCheck: true,
          },
          files: [file],
        },
      },
      apiReport: { enabled: true, reportFileName, reportFolder: REPORTS, reportTempFolder: join(root, '.tmp/api') },
      messages: {
        compilerMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        // Types that exported ones are made of are not all exported, and documentation is not written for TSDoc.
        extractorMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
        tsdocMessageReporting: { default: { logLevel: ExtractorLogLevel.None } },
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(folder, 'package.json'),
  })
  const { apiReportChanged } = Extractor.invoke(config, {
    localBuild: isUpdate,
    messageCallback: (message) => {
      // It tells of its own TypeScript, and what to copy where.
      if (message.logLevel !== ExtractorLogLevel.Error) message.handled = true
    },
  })
  return isUpdate || !apiReportChanged
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
      `What these export has changed: ${changed.join(', ')}. Compare etc/ with .tmp/api/; if it is meant, npm run check:api -- --update`,
    )
  }
  console.log(isUpdate ? 'etc/ is written anew' : 'the packages export what etc/ says')
})
