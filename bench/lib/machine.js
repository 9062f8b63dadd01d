// The origin of figures, which mean nothing without it.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, release, totalmem, type } from 'node:os'

const PACKAGES = [
  'ioredis',
  'express-rate-limit',
  'rate-limit-redis',
  'rate-limiter-flexible',
  '@fastify/rate-limit',
  'koa-ratelimit',
  'async-ratelimiter',
  'rolling-rate-limiter',
  'hono-rate-limiter',
  'express',
  'koa',
  'fastify',
  'autocannon',
]

export function describeMachine() {
  return {
    cpu: `${cpus().length} × ${cpus()[0]?.model.trim()}`,
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    system: `${type()} ${release()}`,
    node: process.version,
    redis: /v=(\S+)/.exec(execFileSync('redis-server', ['--version'], { encoding: 'utf8' }))?.[1] ?? '',
    packages: Object.fromEntries(PACKAGES.map((name) => [name, versionOf(name)])),
  }
}

/** @param {string} name */
function versionOf(name) {
  const manifest = new URL(`../node_modules/${name}/package.json`, import.meta.url)
  return String(JSON.parse(readFileSync(manifest, 'utf8')).version)
}
