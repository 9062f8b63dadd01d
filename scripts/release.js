// `npm run release`: builds the packages, and publishes those that changesets have raised to a new version.
// The manifests get the addresses that follow from `repository` of the root package.json, and lose them afterwards.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pnpm } from './lib/pnpm.js'
import { root } from './lib/project.js'
import { linksOf, repository } from './lib/repository.js'
import { whenStarted } from './lib/run.js'
import { npmRun, take } from './lib/steps.js'

await whenStarted(import.meta.url, async () => {
  const manifests = readdirSync(join(root, 'packages')).map((name) => {
    const path = join(root, 'packages', name, 'package.json')
    const text = readFileSync(path, 'utf8')
    return { path, text, linked: { ...JSON.parse(text), ...linksOf(name, repository()) } }
  })
  await take([npmRun('build')])
  try {
    for (const { path, linked } of manifests) writeFileSync(path, `${JSON.stringify(linked, null, 2)}\n`)
    await pnpm(['exec', 'changeset', 'publish'])
  } finally {
    for (const { path, text } of manifests) writeFileSync(path, text)
  }
})
