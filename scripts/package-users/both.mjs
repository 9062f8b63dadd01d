// One program loads packages by import in one place and by require in another, and by every entry. There has to be one copy of
// each class, or objects of one copy would be refused by the other.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const core = await import('@sluice/core')
for (const name of [
  'bridges/express-rate-limit',
  'bridges/fastify-rate-limit',
  'bridges/hono-rate-limiter',
  'bridges/nestjs-throttler',
  'bridges/rate-limiter-flexible',
  'console',
  'console/express',
  'console/fastify',
  'console/internal',
  'console/koa',
  'core',
  'core/http',
  'core/internal',
  'core/metrics',
  'core/store',
  'express',
  'express/platform',
  'fastify',
  'fastify/platform',
  'fetch',
  'fetch/quota',
  'koa',
  'nestjs',
  'otel',
  'prometheus',
  'testing',
]) {
  const imported = await import(`@sluice/${name}`)
  const required = require(`@sluice/${name}`)
  assert.deepEqual(Object.keys(imported).sort(), Object.keys(required).sort(), `@sluice/${name}`)
  for (const key of Object.keys(imported)) assert.equal(imported[key], required[key], `@sluice/${name}: ${key}`)
}
for (const name of ['express', 'fastify', 'koa', 'nestjs']) {
  const adapter = require(`@sluice/${name}`)
  for (const key of Object.keys(core)) assert.equal(adapter[key], core[key], `@sluice/${name}: ${key}`)
  assert(!('createGuard' in adapter), `@sluice/${name} re-exports what users need, not what adapters are made of`)
}

const limiter = core.createLimiter({ limit: 1, window: '1m' })
const verdict = await limiter.consume('ann')
const { Verdict } = require('@sluice/express')
assert(verdict instanceof Verdict)
assert.equal(await limiter.refund('ann', verdict), true)

// A guard of one entry in CommonJS; its verdict given to an ES module's main entry, and to the store's port.
const guard = require('@sluice/core/http').createGuard({ limit: 2, window: '1m', key: () => 'ann' })
const { PEEK } = await import('@sluice/core/store')
const outcome = await guard({
  method: 'GET',
  path: '/',
  response: { on: () => {}, removeListener: () => {} },
  header: () => undefined,
  getResponseHeader: () => undefined,
})
assert(outcome.verdict instanceof core.Verdict)
assert.equal(await guard.limiter.refund('ann', outcome.verdict), true)
assert.equal(PEEK, require('@sluice/core/store').PEEK)

// The scripts for Redis are loaded with the first Redis store.
const isLoaded = () => Object.keys(require.cache).some((file) => file.endsWith('scripts.cjs'))
assert(!isLoaded(), 'scripts for Redis are loaded without a Redis store')
