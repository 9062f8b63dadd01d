// One of the examples runs behind a real nginx, which its test starts.
import { run } from './lib/run.js'

/** @type {import('./lib/system-program.js').Wanted} */
export const nginx = {
  program: 'nginx',
  // The first version with an option for the error log that holds before it has read its settings.
  what: 'nginx 1.19.5 or later',
  packages: { 'apt-get': 'nginx', apk: 'nginx', dnf: 'nginx', brew: 'nginx' },
  // Debian's folder of servers, which is not on every user's PATH.
  folders: ['/usr/sbin', '/usr/local/sbin'],
  check: (path) => run(path, ['-v']),
}
