// Hostile input, a million of each kind: npm run fuzz [-- <target> [<seed>]]
// A target is a file of test/deep/fuzz, such as keys. A seed finds again what it found before. Each promise ends after ten
// minutes, if it has not tried all by then. `npm test` tries 500, always the same.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'
import { ensureRedis } from './programs.js'

const INPUTS = 1_000_000
const SECONDS = 600

await whenStarted(import.meta.url, async () => {
  const [target, seed = Math.floor(Math.random() * 2 ** 31)] = process.argv.slice(2)
  const targets = readdirSync(join(root, 'test/deep/fuzz'))
    .filter((file) => file.endsWith('.test.ts'))
    .map((file) => file.replace('.test.ts', ''))
  if (target !== undefined && !targets.includes(target)) {
    throw new Error(`expected a target, ${targets.join(', ')}; got ${target}`)
  }
  await ensureRedis()
  console.log(`Seed ${seed}, ${INPUTS} inputs for each promise`)
  await run('vitest', ['run', '--root', 'test', `fuzz/${target ?? ''}`], {
    env: { SLUICE_FUZZ_INPUTS: String(INPUTS), SLUICE_FUZZ_SECONDS: String(SECONDS), SLUICE_FUZZ_SEED: String(seed) },
  })
})
