// Which folder of a package may import which others, and which package what from outside: `npm run check:rooms` enforces it.

/**
 * @typedef {object} Rooms the folders of a package's `src`, or of a room; files beside them import from any
 * @property {Record<string, readonly string[]>} rooms each with the others that it imports
 * @property {Record<string, Rooms>} [inner] folders within rooms
 * @property {readonly string[]} [pure] rooms whose files import each other alone
 * @property {boolean} [isBelow] whether the files beside the rooms import these, and never the other way round
 * @property {readonly string[]} [entries] folders that import from any, and that no room imports
 * @property {Record<string, string>} [why] others may not import a room
 */

/** Up to the limiter. */
const ENGINE = ['util', 'request', 'store', 'kinds', 'policy', 'verdict', 'memory']

/** @type {Record<string, Rooms>} */
export const ROOMS = {
  core: {
    entries: ['entries'],
    pure: ['kernels'],
    why: {
      features: 'The core works without any feature: entries compose them.',
      http: 'Limiters also decide where there is no HTTP.',
      redis: 'Programs without Redis load nothing of it.',
    },
    rooms: {
      util: [],
      kernels: [],
      request: ['util'],
      store: ['util', 'kernels'],
      blocks: ['util', 'store'],
      kinds: ['util', 'kernels', 'store', 'memory'],
      policy: ['util', 'kernels', 'request', 'store', 'kinds'],
      verdict: ['policy', 'store', 'util'],
      memory: ['util', 'kernels', 'store', 'blocks'],
      redis: ['util', 'kernels', 'store', 'kinds', 'blocks'],
      limiter: [...ENGINE, 'blocks'],
      http: [...ENGINE, 'limiter'],
      metrics: ['util', 'store', 'policy', 'verdict', 'limiter'],
      logging: ['util', 'store', 'verdict', 'limiter'],
      features: [...ENGINE, 'kernels', 'blocks', 'redis', 'limiter', 'http', 'metrics'],
    },
    inner: {
      features: {
        rooms: {
          offenders: [],
          lean: ['offenders'],
          queues: ['lean'],
          meters: ['lean'],
          bodies: ['lean', 'meters'],
          outcomes: ['lean', 'bodies'],
          lists: ['lean', 'meters'],
          bans: ['lean', 'lists', 'outcomes'],
          charges: ['lean'],
          leases: [],
          relaxed: ['lean'],
          records: ['lists', 'bans', 'offenders'],
          documents: ['meters', 'lists', 'outcomes', 'charges', 'queues'],
        },
      },
      http: {
        rooms: {
          response: [],
          headers: [],
          identity: [],
          responders: ['response', 'headers', 'identity'],
          charging: ['response', 'headers', 'responders'],
          guard: ['response', 'headers', 'identity', 'responders', 'charging'],
          adapter: ['response', 'headers', 'identity', 'responders', 'charging', 'guard'],
        },
      },
      redis: {
        isBelow: true,
        rooms: {
          warnings: [],
          clients: [],
          scripts: ['clients'],
          health: ['warnings', 'clients', 'scripts'],
          blocks: ['clients', 'scripts'],
          slots: ['clients', 'scripts', 'health'],
          permits: ['clients', 'scripts', 'health', 'slots'],
          batching: ['clients', 'scripts', 'slots', 'health'],
          layers: ['clients', 'scripts', 'slots', 'batching', 'health', 'blocks', 'permits'],
          changes: ['clients', 'scripts', 'slots', 'batching', 'blocks', 'layers'],
        },
      },
    },
  },
  policies: {
    rooms: {
      problems: [],
      schema: ['problems'],
      document: ['problems', 'schema'],
      match: ['document'],
      compile: ['problems', 'schema', 'document', 'match'],
      sources: ['problems', 'schema', 'document', 'match', 'compile'],
    },
  },
  fetch: {
    rooms: {
      quota: [],
      learned: ['quota'],
      usage: ['quota'],
      circuit: ['quota'],
      turns: ['quota', 'learned', 'usage', 'circuit'],
      undici: ['quota', 'turns', 'usage'],
    },
  },
  console: {
    entries: ['entries'],
    rooms: {
      safe: [],
      identity: [],
      figures: [],
      traffic: [],
      page: [],
      routes: ['identity', 'figures', 'traffic'],
    },
  },
  cli: {
    rooms: {
      program: [],
      postgres: ['program'],
      redis: ['program'],
      documents: ['program'],
      serve: ['program', 'redis'],
      commands: ['program', 'postgres', 'redis', 'documents', 'serve'],
    },
  },
  simulate: {
    rooms: {
      recording: [],
      formats: ['recording'],
      read: ['formats', 'recording'],
      replay: ['formats'],
      figures: ['formats', 'replay'],
      proposal: ['formats', 'replay', 'figures'],
      report: ['read', 'figures', 'proposal'],
    },
  },
}

const ADAPTER =
  'An adapter is glue: it imports @sluice/core, its entries http, lean and features, node: modules and its own framework.'
const NO_ADAPTER = '@sluice/core/http is for adapters: what our other packages need is in @sluice/core/internal.'

/** @type {Record<string, { only?: readonly string[], never?: readonly string[], why: string }>} what packages import of others */
export const OUTSIDE = {
  core: {
    never: ['express', 'koa', 'fastify', 'ioredis', 'redis', '@types', '@redis', '@sluice'],
    why: 'The core imports no framework and no Redis client: describe the shape that is needed.',
  },
  bridges: {
    only: ['@sluice/core', '@sluice/core/internal'],
    why: 'A bridge imports no peer: describe the shape that is needed. It decides by @sluice/core.',
  },
  console: {
    only: [
      '@sluice/core',
      '@sluice/core/internal',
      '@sluice/core/metrics',
      '@sluice/core/store',
      'express',
      'fastify',
      'koa',
    ],
    why: 'The console takes limiters and policies by their shape: it imports @sluice/core, and frameworks in their entries.',
  },
  policies: { never: ['@sluice/core/http'], why: NO_ADAPTER },
  fetch: {
    only: ['@sluice/core', '@sluice/core/internal'],
    why: 'Requests wait by @sluice/core: describe the shape of a client.',
  },
  prometheus: { never: ['@sluice/core/http'], why: NO_ADAPTER },
  otel: { never: ['@sluice/core/http'], why: NO_ADAPTER },
  testing: { never: ['@sluice/core/http'], why: NO_ADAPTER },
  express: {
    only: ['@sluice/core', '@sluice/core/http', '@sluice/core/features', '@sluice/core/lean', 'express'],
    why: ADAPTER,
  },
  koa: {
    only: ['@sluice/core', '@sluice/core/http', '@sluice/core/features', '@sluice/core/lean', 'koa'],
    why: ADAPTER,
  },
  fastify: {
    only: [
      '@sluice/core',
      '@sluice/core/http',
      '@sluice/core/features',
      '@sluice/core/lean',
      'fastify',
      'fastify-plugin',
    ],
    why: ADAPTER,
  },
  nestjs: {
    only: [
      '@sluice/core',
      '@sluice/core/http',
      '@sluice/core/internal',
      '@sluice/express/platform',
      '@sluice/fastify/platform',
      '@nestjs/common',
      '@nestjs/core',
      '@nestjs/websockets',
      'rxjs',
    ],
    why: 'The adapter for Nest is glue: it imports Nest and its rxjs, @sluice/core and its entries, and the parts of the adapters beneath it.',
  },
}
