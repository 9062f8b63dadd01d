// `npm run release`: builds the packages, and packs them into .tmp/release, from where the release workflow publishes them.
import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { pnpm } from './lib/pnpm.js'
import { root } from './lib/project.js'
import { release, requireRelease } from './lib/repository.js'
import { whenStarted } from './lib/run.js'
import { npmRun, take } from './lib/steps.js'

await whenStarted(import.meta.url, async () => {
  requireRelease(release())
  await take([npmRun('check:generated', ['--no-redis']), npmRun('build')])
  const into = join(root, '.tmp/release')
  rmSync(into, { recursive: true, force: true })
  mkdirSync(into, { recursive: true })
  for (const name of readdirSync(join(root, 'packages')))
    await pnpm(['pack', '--out', join(into, `${name}.tgz`)], { cwd: join(root, 'packages', name) })
})
