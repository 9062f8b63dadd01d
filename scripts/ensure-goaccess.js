// Counts per client of a simulation are compared with those of goaccess.
import { run } from './lib/run.js'

/** @type {import('./lib/system-program.js').Wanted} */
export const goaccess = {
  program: 'goaccess',
  what: 'goaccess 1.4 or later',
  packages: { 'apt-get': 'goaccess', apk: 'goaccess', dnf: 'goaccess', brew: 'goaccess' },
  folders: [],
  check: (path) => run(path, ['--version']),
}
