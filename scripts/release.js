// `npm run release`: builds the packages, and packs them into .tmp/release, from where the release workflow publishes them.
// The manifests get the addresses that follow from `repository` of the root package.json, and lose them afterwards.
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pnpm } from './lib/pnpm.js'
import { root } from './lib/project.js'
import { linksOf, repository } from './lib/repository.js'
import { whenStarted } from './lib/run.js'
import { npmRun, take } from './lib/steps.js'

await whenStarted(import.meta.url, async () => {
  const packages = readdirSync(join(root, 'packages')).map((name) => {
    const folder = join(root, 'packages', name)
    const text = readFileSync(join(folder, 'package.json'), 'utf8')
    return { name, folder, text, linked: { ...JSON.parse(text), ...linksOf(name, repository()) } }
  })
  await take([npmRun('build')])
  const into = join(root, '.tmp/release')
  rmSync(into, { recursive: true, force: true })
  mkdirSync(into, { recursive: true })
  for (const { name, folder, text, linked } of packages) {
    const manifest = join(folder, 'package.json')
    try {
      writeFileSync(manifest, `${JSON.stringify(linked, null, 2)}\n`)
      await pnpm(['pack', '--out', join(into, `${name}.tgz`)], { cwd: folder })
    } finally {
      writeFileSync(manifest, text)
    }
  }
})
