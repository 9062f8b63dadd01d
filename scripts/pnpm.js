// Runs the pnpm that package.json names, without a global installation: node scripts/pnpm.js <arguments>
import { pnpm, whenStarted } from './lib/run.js'

await whenStarted(import.meta.url, () => pnpm(process.argv.slice(2)))
