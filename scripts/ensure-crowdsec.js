// Which clients a simulation refuses is compared with crowdsec, from Debian's package: unpacked, as its installation needs the
// network of its makers.
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './lib/project.js'
import { run } from './lib/run.js'

/**
 * Unpacks crowdsec where that has not been done, and returns its folder: `usr/bin/crowdsec` beside `usr/share/crowdsec/hub`.
 */
export async function ensureCrowdsec() {
  const folder = join(root, '.tmp/crowdsec')
  if (existsSync(join(folder, 'usr/bin/crowdsec'))) return folder
  mkdirSync(folder, { recursive: true })
  await run('apt-get', ['download', 'crowdsec'], { cwd: folder, quiet: true })
  const file = readdirSync(folder).find((name) => name.endsWith('.deb'))
  if (file === undefined) throw new Error(`no package crowdsec in ${folder}`)
  await run('dpkg', ['-x', file, '.'], { cwd: folder, quiet: true })
  return folder
}
