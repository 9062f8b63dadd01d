// `npm run build:list-worker`: embeds the thread that reads lists (packages/core/src/lists/files/worker.ts) as text in a module
// of the core, so that it starts from wherever the core runs: its source, its build, and a user's own bundle.
// With --check it only looks whether the module is up to date.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { build } from 'esbuild'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

const folder = join(root, 'packages/core/src/lists/files')
const target = join(folder, 'worker.generated.ts')

/** @returns {Promise<string>} */
async function renderModule() {
  const { outputFiles } = await build({
    entryPoints: [join(folder, 'worker.ts')],
    bundle: true,
    write: false,
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    minify: true,
    // The text says what it says, wherever it is built.
    charset: 'ascii',
    legalComments: 'none',
    logLevel: 'warning',
  })
  const source = outputFiles[0]?.text.trim() ?? ''
  return `// Made by scripts/build-list-worker.js from worker.ts: do not edit.\n\nexport const WORKER = ${JSON.stringify(source)}\n`
}

await whenStarted(import.meta.url, async () => {
  const module = await renderModule()
  if (!process.argv.includes('--check')) writeFileSync(target, module)
  else if (!existsSync(target) || readFileSync(target, 'utf8') !== module) {
    throw new Error(`${relative(root, target)} is stale; run: npm run build:list-worker`)
  }
  console.log(`the thread that reads lists: ${module.length} bytes`)
})
