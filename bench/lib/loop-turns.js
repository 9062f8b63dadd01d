import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { zipf } from './keep-in-flight.js'

/**
 * @typedef {object} LoadInTurns
 * @property {number} ms for how long
 * @property {number} keys taken in turn, made before the first call
 * @property {boolean} [isZipf] whether key n is used 1/n as often as the first, in no order
 * @property {number} [first] the number of earlier calls
 * @property {number} [inFlight] calls in each turn of the event loop, as fast as they go
 * @property {number} [perSecond] instead, the number of calls that are due per second, some each ms
 */

/**
 * Makes calls like a server whose requests come in turns of the event loop, with timers and sockets between them.
 * Each turn waits for its calls.
 *
 * @param {LoadInTurns} load
 * @param {(key: string) => Promise<unknown>} call
 * @returns {Promise<number>} how many were made
 */
export async function callInTurns({ ms, keys, isZipf = false, first = 0, inFlight = 1, perSecond }, call) {
  const names = isZipf
    ? Array.from({ length: 4 * keys }, (_, i) => `user:${zipf(i, keys)}`)
    : Array.from({ length: keys }, (_, i) => `user:${i}`)
  const startedMs = performance.now()
  let made = 0
  for (let passedMs = 0; passedMs < ms; passedMs = performance.now() - startedMs) {
    const upTo = perSecond === undefined ? made + inFlight : Math.floor((passedMs * perSecond) / 1000)
    const calls = []
    while (made < upTo) calls.push(call(/** @type {string} */ (names[(first + made++) % names.length])))
    await Promise.all(calls)
    await (perSecond === undefined ? nextTurn() : sleep(1))
  }
  return made
}
