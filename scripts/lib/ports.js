import { createServer } from 'node:net'

/** Below Linux's range for outgoing connections, so that no connection takes a port before its server does. */
const FIRST = 12_000
const LAST = 32_000

/**
 * A free port on 127.0.0.1.
 *
 * @returns {Promise<number>}
 */
export async function freePort() {
  for (let tries = 0; tries < 100; tries++) {
    const port = FIRST + Math.floor(Math.random() * (LAST - FIRST))
    if (await isFree(port)) return port
  }
  throw new Error(`no free port found between ${FIRST} and ${LAST} on 127.0.0.1`)
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer()
      .once('error', () => resolve(false))
      .once('listening', () => server.close(() => resolve(true)))
      .listen(port, '127.0.0.1')
  })
}
