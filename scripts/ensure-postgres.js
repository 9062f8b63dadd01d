// Policies may be in PostgreSQL: their tests start servers of their own.
import { readdirSync } from 'node:fs'
import { run } from './lib/run.js'

/** Debian's folder of all versions, which is not on PATH. */
const DEBIAN = '/usr/lib/postgresql'

/** @type {import('./lib/system-program.js').Wanted} */
export const postgres = {
  program: 'postgres',
  what: 'PostgreSQL 13 or later',
  packages: { 'apt-get': 'postgresql', apk: 'postgresql', dnf: 'postgresql-server', brew: 'postgresql' },
  // Read each time, as it may have been installed meanwhile.
  get folders() {
    return versionsIn(DEBIAN)
  },
  check: (path) => run(path, ['--version']),
}

/**
 * The newest first.
 *
 * @param {string} folder
 */
function versionsIn(folder) {
  try {
    const versions = readdirSync(folder).sort((a, b) => Number(b) - Number(a))
    return versions.map((version) => `${folder}/${version}/bin`)
  } catch {
    return []
  }
}
