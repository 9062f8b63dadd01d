// The README shows curl lines, and its test runs them as they stand. Looks for curl, installs the system's package where
// that can be done without asking, and else says what to do.
import { whenStarted } from './lib/run.js'
import { adviceHere, obtain } from './lib/system-program.js'

/** @type {import('./lib/system-program.js').Wanted} */
export const curl = {
  program: 'curl',
  what: 'curl 7 or later',
  packages: { 'apt-get': 'curl', apk: 'curl', dnf: 'curl', brew: 'curl' },
}

/**
 * Resolves when the tests can have their curl; rejects with a message that names the remedy.
 */
export async function ensureCurl() {
  if ((await obtain(curl)) === undefined) throw new Error(adviceHere(curl))
}

await whenStarted(import.meta.url, ensureCurl)
