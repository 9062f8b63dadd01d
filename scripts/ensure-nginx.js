// One of the examples runs behind a real nginx, which its test starts. Looks for one, installs the system's package where
// that can be done without asking, and else says what to do.
import { run, whenStarted } from './lib/run.js'
import { adviceHere, obtain } from './lib/system-program.js'

/** @type {import('./lib/system-program.js').Wanted} */
export const nginx = {
  program: 'nginx',
  // The first that can be told where to write errors before it has read its settings.
  what: 'nginx 1.19.5 or later',
  packages: { 'apt-get': 'nginx', apk: 'nginx', dnf: 'nginx', brew: 'nginx' },
  // Where Debian puts servers, which is not on every user's PATH.
  folders: ['/usr/sbin', '/usr/local/sbin'],
}

/**
 * Resolves when the tests can have their nginx; rejects with a message that names the remedy.
 */
export async function ensureNginx() {
  const program = await obtain(nginx)
  if (program === undefined) throw new Error(adviceHere(nginx))
  await run(program, ['-v'])
}

await whenStarted(import.meta.url, ensureNginx)
