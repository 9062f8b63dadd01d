import { join } from 'node:path'
import { build } from 'esbuild'
import { root } from './project.js'

/** What servers install beside, and bundle or not by themselves. */
const EXTERNAL = ['express', 'fastify', 'ioredis', 'koa', 'redis']

/** Programs of one limiter, of which bundles are compared. */
export const PROGRAMS = {
  'Express, in memory': limiter('express', ''),
  'Express, on Redis': limiter('express', ', store: redisStore(new Redis())'),
  'Koa, in memory': limiter('koa', ''),
  'Fastify, in memory': `import { rateLimit } from '@sluice/fastify'
app.register(rateLimit, { limit: 100, window: '1m' })`,
  'without HTTP, in memory': `import { createLimiter } from '@sluice/core'
globalThis.limiter = createLimiter({ limit: 100, window: '1m' })`,
  'Express, lean, in memory': `import { withFeatures } from '@sluice/express/lean'
app.use(withFeatures().rateLimit({ limit: 100, window: '1m' }))`,
  'Express, lean with bans, in memory': `import { bans, withFeatures } from '@sluice/express/lean'
app.use(withFeatures(bans).rateLimit({ limit: 100, window: '1m', ban: { after: 5, within: '10m', for: ['1m'] } }))`,
  'lean, without HTTP, in memory': `import { withFeatures } from '@sluice/core/lean'
globalThis.limiter = withFeatures().createLimiter({ limit: 100, window: '1m' })`,
}

/** @param {string} adapter @param {string} options beside the limit */
function limiter(adapter, options) {
  const store = options === '' ? '' : ', redisStore'
  const client = options === '' ? '' : "import { Redis } from 'ioredis'\n"
  return `${client}import { rateLimit${store} } from '@sluice/${adapter}'
app.use(rateLimit({ limit: 100, window: '1m'${options} }))`
}

/**
 * Bundles a program as a user does for a server, minified and without frameworks and Redis clients.
 *
 * @param {string} program
 * @returns {Promise<{ bytes: number, inputs: Record<string, number> }>} the size, and that of each file in it
 */
export async function bundle(program) {
  const { metafile } = await build({
    stdin: { contents: program, resolveDir: join(root, 'bench') },
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'esm',
    external: EXTERNAL,
    outfile: 'bundle.js',
    write: false,
    metafile: true,
    logLevel: 'error',
  })
  const { bytes, inputs } = /** @type {import('esbuild').Metafile['outputs'][string]} */ (metafile.outputs['bundle.js'])
  return {
    bytes,
    inputs: Object.fromEntries(Object.entries(inputs).map(([file, { bytesInOutput }]) => [file, bytesInOutput])),
  }
}
