// @ts-check
// Three servers, one store: memory, or Redis where REDIS_URL is set. Started by `npm start`. With FIGURES=1 it prints a line
// with its decisions each second.
import { fileURLToPath } from 'node:url'
import { memoryStore, redisStore } from '@sluice/core'
import { policies } from '@sluice/policies'
import { sluiceMetrics } from '@sluice/prometheus'
import { Redis } from 'ioredis'
import { expressServer } from './express.js'
import { fastifyServer } from './fastify.js'
import { printFigures } from './figures.js'
import { koaServer } from './koa.js'

/** The time that connections have to end. */
const GRACE_MS = 3000

const { FIGURES, PORT = '3000', REDIS_URL } = process.env
const first = Number(PORT)
if (!Number.isInteger(first) || first < 1 || first > 65_533) {
  console.error(`PORT: expected a port from 1 to 65533, as three in a row are used, got "${PORT}"`)
  process.exit(1)
}
const ports = [first, first + 1, first + 2]

// Counts for /metrics, from the first request on.
sluiceMetrics()
const redis = REDIS_URL ? new Redis(REDIS_URL) : undefined
// The store reports each outage once, and its end once.
redis?.on('error', () => {})
const store = redis ? redisStore(redis, { onStateChange }) : memoryStore()

const loaded = await policies.from({ file: fileURLToPath(new URL('policies.yaml', import.meta.url)) })

const started = [
  { name: 'express', port: first, server: await expressServer(store, loaded, first, ports) },
  { name: 'koa', port: first + 1, server: await koaServer(store, loaded, first + 1, ports) },
  { name: 'fastify', port: first + 2, server: await fastifyServer(store, loaded, first + 2, ports) },
]

process.once('SIGINT', stop)
process.once('SIGTERM', stop)

try {
  for (const { name, port, server } of started) {
    await listen(server, port)
    console.log(`${name.padEnd(8)} http://localhost:${port}`)
  }
  if (FIGURES) printFigures()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
  await stop()
}

/**
 * @param {import('@sluice/core').StoreState} state
 * @param {Error | undefined} cause
 */
function onStateChange(state, cause) {
  console.log(state === 'available' ? 'Redis decides again' : `each server decides by itself: redis: ${cause?.message}`)
}

/**
 * @param {import('node:http').Server} server
 * @param {number} port
 */
function listen(server, port) {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, () => resolve(undefined))
  })
}

async function stop() {
  const cut = setTimeout(() => {
    for (const { server } of started) server.closeAllConnections()
  }, GRACE_MS).unref()
  await Promise.all(started.map(({ server }) => new Promise((resolve) => server.close(resolve))))
  clearTimeout(cut)
  await loaded.close()
  await store.close()
  redis?.disconnect()
}
