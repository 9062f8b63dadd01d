// @ts-check
// Three servers, one store: memory, or Redis where REDIS_URL is set; and the console. Started by `npm start`. REDIS_TIMEOUT is
// the time that Redis has to reply, in ms. With FIGURES=1 it prints a line with its decisions each second. Only this machine reaches it, unless HOST is set.
import { fileURLToPath } from 'node:url'
import { memoryStore, redisStore, storeList } from '@sluice/core'
import { policies } from '@sluice/policies'
import { sluiceMetrics } from '@sluice/prometheus'
import { Redis } from 'ioredis'
import { demoConsole } from './console.js'
import { expressServer } from './express.js'
import { fastifyServer } from './fastify.js'
import { printFigures } from './figures.js'
import { koaServer } from './koa.js'

/** The time that connections have to end. */
const GRACE_MS = 3000

const { FIGURES, HOST = '127.0.0.1', PORT = '3000', REDIS_URL, REDIS_TIMEOUT } = process.env
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
// Lists that an operator changes, and counts of refusals by client.
const options = { allow: storeList('partners'), deny: storeList('abusers'), offenders: true }
const ofRedis = { ...options, onStateChange, ...(REDIS_TIMEOUT && { timeout: Number(REDIS_TIMEOUT) }) }
const store = redis ? redisStore(redis, ofRedis) : memoryStore(options)

const loaded = await policies.from({ file: fileURLToPath(new URL('policies.yaml', import.meta.url)) })

const theConsole = demoConsole(store, loaded, first, HOST)
const started = [
  { name: 'express', port: first, server: await expressServer(store, loaded, first, ports, theConsole) },
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
  printLink()
  console.log('         Its button "Send traffic" gives it something to show.')
  console.log(`\nPaste into another terminal, for the routes to try:\n\n  curl localhost:${first}\n`)
  // Enter, as a link works once.
  process.stdin.on('data', printLink)
  if (FIGURES) printFigures()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
  await stop()
}

function printLink() {
  console.log(`${'console'.padEnd(8)} ${theConsole.newLink()}`)
  console.log('         Open it within 60 seconds: the link works once. Enter prints another.')
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
    server.listen(port, HOST, () => resolve(undefined))
  })
}

async function stop() {
  process.stdin.destroy()
  // Its streams would keep a server open.
  theConsole.close()
  const cut = setTimeout(() => {
    for (const { server } of started) server.closeAllConnections()
  }, GRACE_MS).unref()
  await Promise.all(started.map(({ server }) => new Promise((resolve) => server.close(resolve))))
  clearTimeout(cut)
  await loaded.close()
  await store.close()
  redis?.disconnect()
}
