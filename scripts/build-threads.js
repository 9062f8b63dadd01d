// `npm run build:threads`: embeds the programs of threads (worker.ts) as text in modules of their packages. A thread then
// starts from wherever the package runs: its source, its build, and a user's own bundle. With --check it only looks whether the
// modules are up to date.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build } from 'esbuild'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

/** Each has a worker.ts, and worker.generated.ts is made of it. `external`: what it needs that is installed beside its package. */
const THREADS = [
  { folder: 'packages/core/src/lists/files', external: [] },
  { folder: 'packages/policies/src/document', external: ['yaml'] },
  { folder: 'packages/cli/src/simulate/read/apart', external: [] },
]

/** The text is in no folder, so `from` in its `workerData` names the folder for look-ups. */
const REQUIRE_FROM = `require=require('node:module').createRequire(require('node:worker_threads').workerData.from);`

/** @param {{ folder: string, external: string[] }} thread */
async function renderModule({ folder, external }) {
  const { outputFiles } = await build({
    entryPoints: [join(root, folder, 'worker.ts')],
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    external,
    // Code of other packages is bundled from its source, whether that is built or not.
    conditions: ['@sluice/source'],
    ...(external.length > 0 && { banner: { js: REQUIRE_FROM } }),
    minify: true,
    // The text says what it says, wherever it is built.
    charset: 'ascii',
    legalComments: 'none',
    // Modules that look for their own file take `__filename` there.
    logOverride: { 'empty-import-meta': 'silent' },
    logLevel: 'warning',
  })
  const source = outputFiles[0]?.text.trim() ?? ''
  return `// Made by scripts/build-threads.js from worker.ts: do not edit.\n\nexport const WORKER = ${JSON.stringify(source)}\n`
}

await whenStarted(import.meta.url, async () => {
  for (const thread of THREADS) {
    const target = join(root, thread.folder, 'worker.generated.ts')
    const module = await renderModule(thread)
    if (!process.argv.includes('--check')) writeFileSync(target, module)
    else if (!existsSync(target) || readFileSync(target, 'utf8') !== module) {
      throw new Error(`${relative(root, target)} is stale; run: npm run build:threads`)
    }
    console.log(`${thread.folder}: a thread of ${module.length} bytes`)
  }
})
