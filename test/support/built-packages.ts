import { ensureBuilt } from './built-core.js'

/**
 * Sees to it that all packages are built before the first test runs on them. If a test did so, others would load a package
 * while it is written.
 */
export default function setup(): void {
  ensureBuilt('core', 'testing', 'express', 'koa', 'fastify', 'nestjs', 'policies')
  ensureBuilt('prometheus', 'otel', 'console', 'bridges', 'fetch', 'cli')
}
