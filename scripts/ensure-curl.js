// The README shows curl lines, and its test runs them unchanged.

/** @type {import('./lib/system-program.js').Wanted} */
export const curl = {
  program: 'curl',
  what: 'curl 7 or later',
  packages: { 'apt-get': 'curl', apk: 'curl', dnf: 'curl', brew: 'curl' },
}
