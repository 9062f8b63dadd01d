/**
 * @typedef {object} Load
 * @property {number} count calls
 * @property {number} inFlight the number of pending calls at any time
 * @property {number} keys taken in turn
 * @property {number} [step] from one key to the next
 * @property {number} [first] the number of earlier calls
 * @property {boolean} [isZipf] whether key n is used 1/n as often as the first, in no order
 * @property {boolean} [prepared] whether keys are made before the first call, not one for each
 * @property {string} [prefix] of each key, so that its keys differ from those of another load
 */

/**
 * Prepares calls, and returns a function that makes them and resolves when the last is done.
 *
 * @param {Load} load
 * @param {(key: string) => unknown} call
 */
export function inFlight(load, call) {
  const { count, inFlight, keys, step = 1, first = 0, isZipf = false, prepared = false, prefix = 'user:' } = load
  const make = (/** @type {number} */ i) => `${prefix}${isZipf ? zipf(i, keys) : (i * step) % keys}`
  const names = prepared ? Array.from({ length: keys }, (_, i) => make(i)) : []
  const nameOf = prepared ? (/** @type {number} */ i) => /** @type {string} */ (names[i % keys]) : make
  let made = 0
  const one = async () => {
    while (made < count) await call(nameOf(first + made++))
  }
  return () => Promise.all(Array.from({ length: inFlight }, one))
}

/**
 * The key of the i-th call: the same for all contestants, in a random order.
 *
 * @param {number} i
 * @param {number} keys
 */
export function zipf(i, keys) {
  const share = (Math.imul(i + 1, 0x9e3779b1) >>> 0) / 2 ** 32
  return Math.floor(keys ** share)
}

/**
 * The same, without a break.
 *
 * @param {Load} load
 * @param {(key: string) => unknown} call
 */
export const keepInFlight = (load, call) => inFlight(load, call)()
