// The alert rules and the metrics are checked by Prometheus's own programs, and an example is scraped by a real one.
import { run } from './lib/run.js'

/** @type {import('./lib/system-program.js').Wanted} */
export const prometheus = {
  program: 'prometheus',
  what: 'prometheus 2.40 or later, with promtool',
  packages: { 'apt-get': 'prometheus', apk: 'prometheus', dnf: 'golang-github-prometheus', brew: 'prometheus' },
  check: (path) => run(path.replace(/prometheus$/, 'promtool'), ['--version'], { quiet: true }),
}
