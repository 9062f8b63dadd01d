// The built packages on other runtimes than Node: npm run deep -- runtimes
// Bun and Deno from npm run the programs that Node runs on every version: each framework limits, each Redis client decides, and
// `import` and `require` have one copy.
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { ensureRedis } from './ensure-redis.js'
import { freePort } from './lib/ports.js'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'
import { startThrowawayRedis } from './lib/throwaway-redis.js'
import { install, packAll, users } from './lib/users-project.js'
import { setsOfPeers } from './versions.js'

const folder = join(root, '.tmp/runtimes')
const project = join(folder, 'project')

const RUNTIMES = /** @type {Record<string, { installed: Record<string, string>, command: string[] }>} */ ({
  Bun: { installed: { bun: '^1.4' }, command: ['bun', 'run'] },
  Deno: { installed: { deno: '^2.9' }, command: ['deno', 'run', '--allow-all', '--node-modules-dir=manual'] },
})
const PROGRAMS = ['versions.mjs', 'both.mjs']

await whenStarted(import.meta.url, async () => {
  await ensureRedis()
  rmSync(folder, { recursive: true, force: true })
  const runtimes = Object.assign({}, ...Object.values(RUNTIMES).map(({ installed }) => installed))
  await install(project, { ...setsOfPeers().newest, ...runtimes, ...(await packAll(folder)) })
  const port = await freePort()
  const redis = await startThrowawayRedis(['--port', String(port)])
  try {
    for (const [name, { command }] of Object.entries(RUNTIMES)) {
      for (const program of PROGRAMS) {
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
