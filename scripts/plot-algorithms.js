// Draws what each algorithm admits into docs/plots/ and the table of docs/choosing-an-algorithm.md: `npm run docs:plots`.
// Runs the built core; a test compares what is committed with what the source gives.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pnpm } from './lib/pnpm.js'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'
import { generate, TABLE } from './plots/generate.js'

await whenStarted(import.meta.url, async () => {
  await pnpm(['exec', 'turbo', 'run', 'build', '--filter', '@sluice/core'])
  /** @type {string} */
  const built = '../packages/core/dist/index.js'
  const { pictures, table } = await generate(await import(built))
  for (const [file, svg] of pictures) writeFileSync(join(root, 'docs/plots', file), svg)

  const page = join(root, 'docs/choosing-an-algorithm.md')
  const text = readFileSync(page, 'utf8')
  if (!TABLE.test(text)) throw new Error(`${page}: no place for the table`)
  writeFileSync(
    page,
    text.replace(TABLE, () => table),
  )
  console.log(`${pictures.size} plots and a table are up to date.`)
})
