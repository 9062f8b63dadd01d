// The deep run sends paths to a servlet container behind nginx, which its test starts.

/** @type {import('./lib/system-program.js').Wanted} */
export const tomcat = {
  program: 'catalina.sh',
  what: 'Tomcat 10',
  packages: { 'apt-get': 'tomcat10', apk: 'tomcat10', dnf: 'tomcat', brew: 'tomcat' },
  // The folder of its packages, which is not on the PATH.
  folders: ['/usr/share/tomcat10/bin', '/usr/share/tomcat/bin', '/opt/homebrew/opt/tomcat/libexec/bin'],
}
