// The built packages on other runtimes than Node: npm run deep -- runtimes
// Bun and Deno from npm run the program that Node runs on every version: each framework limits, and each Redis client decides.
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { freePort } from './lib/ports.js'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'
import { startThrowawayRedis } from './lib/throwaway-redis.js'
import { install, packAll, users } from './lib/users-project.js'
import { ensureRedis } from './programs.js'
import { setsOfPeers } from './versions.js'

const folder = join(root, '.tmp/runtimes')
const project = join(folder, 'project')

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

await whenStarted(import.meta.url, async () => {
  await ensureRedis()
  rmSync(folder, { recursive: true, force: true })
  const runtimes = Object.assign({}, ...Object.values(RUNTIMES).map(({ installed }) => installed))
  await install(project, { ...setsOfPeers().newest, ...runtimes, ...(await packAll(folder)) })
  const port = await freePort()
  const redis = await startThrowawayRedis(['--port', String(port)])
  try {
    for (const [name, { command, programs }] of Object.entries(RUNTIMES)) {
      for (const program of programs) {
        copyFileSync(join(users, program), join(project, program))
        const [runtime = '', ...args] = command
        const printed = await run(join(project, 'node_modules/.bin', runtime), [...args, program], {
          cwd: project,
          env: { REDIS_URL: `redis://127.0.0.1:${port}`, NODE_OPTIONS: '' },
          quiet: true,
        })
        console.log(`${name}, ${program}: ${printed.trim() || 'fine'}`)
      }
    }
  } finally {
    await redis.end()
  }
})
