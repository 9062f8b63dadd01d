// Runs the pnpm that package.json names, without a global installation: node scripts/pnpm.js <arguments>
import { pnpm } from './lib/pnpm.js'
import { whenStarted } from './lib/run.js'

await whenStarted(import.meta.url, () => pnpm(process.argv.slice(2)))
