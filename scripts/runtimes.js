// The built packages on other runtimes than Node: npm run deep -- runtimes
// Bun and Deno from npm run the program that Node runs on every version: each framework limits, and each Redis client decides.
import { join } from 'node:path'
import { whenStarted } from './lib/run.js'
import { install, runIn, withTarballs } from './lib/users-project.js'
import { setsOfPeers } from './versions.js'

/** @typedef {{ installed: Record<string, string>, command: string[], programs: string[] }} Runtime */

const RUNTIMES = /** @type {Record<string, Runtime>} */ ({
  Bun: { installed: { bun: '^1.4' }, command: ['bun', 'run'], programs: ['versions.mjs', 'both.mjs'] },
  Deno: {
    installed: { deno: '^2.9' },
    command: ['deno', 'run', '--allow-all', '--node-modules-dir=manual'],
    // Not `both.mjs`: where a module of Deno requires an entry by name, its imports of that entry have the names `default` alone.
    programs: ['versions.mjs'],
  },
})

await whenStarted(import.meta.url, () =>
  withTarballs('runtimes', async ({ folder, tarballs, env }) => {
    const project = join(folder, 'project')
    const runtimes = Object.assign({}, ...Object.values(RUNTIMES).map(({ installed }) => installed))
    await install(project, { ...setsOfPeers().newest, ...runtimes, ...tarballs })
    for (const [name, { command, programs }] of Object.entries(RUNTIMES)) {
      for (const program of programs) {
        const [runtime = '', ...args] = command
        const printed = await runIn(project, [join(project, 'node_modules/.bin', runtime), ...args], program, env)
        console.log(`${name}, ${program}: ${printed || 'fine'}`)
      }
    }
  }),
)
