// Access logs of any length, the same for the same seed: written as they are read, by clients of whom few send most.

/**
 * @typedef {object} LoggedRequest
 * @property {number} endMs when its line is written, in ms since the epoch
 * @property {number} durationMs
 * @property {number} client 0 is the busiest
 * @property {string} ip
 * @property {string} method
 * @property {string} target
 * @property {number} status
 * @property {number} bytes
 * @property {string} agent
 */

/**
 * @typedef {object} LogOptions
 * @property {number} seed
 * @property {number} lines
 * @property {number} clients the n-th sends about 1/n as much as the first
 * @property {number} [perSecond] requests, on average; 200 by default
 * @property {number} [fromMs] 2026-03-01 by default
 * @property {(request: LoggedRequest) => string} [format] a line without its break; combined by default
 */

const CHUNK = 256 * 1024
const FROM_MS = Date.UTC(2026, 2, 1)
const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec']
const METHODS = ['GET', 'GET', 'GET', 'GET', 'GET', 'GET', 'POST', 'HEAD']
const STATUSES = [200, 200, 200, 200, 200, 200, 304, 404, 401, 500]
const PATHS = ['/', '/login', '/api/items?page=2', '/assets/app.3f9a.js', '/users/', '/search?q=caf%C3%A9']
const AGENTS = [
  'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0',
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1',
  'curl/8.9.1',
  'python-requests/2.32.3',
]

/**
 * Yields requests in the order of their ends.
 *
 * @param {LogOptions} options
 * @returns {Generator<LoggedRequest, void, void>}
 */
export function* loggedRequests({ seed, lines, clients, perSecond = 200, fromMs = FROM_MS }) {
  const random = randomOf(seed)
  /** @param {readonly any[]} list */
  const oneOf = (list) => list[Math.floor(random() * list.length)]
  let endMs = fromMs
  for (let line = 0; line < lines; line++) {
    endMs += (-Math.log(1 - random()) * 1000) / perSecond
    const client = Math.floor(clients ** random()) - 1
    const path = oneOf(PATHS)
    yield {
      endMs: Math.floor(endMs),
      durationMs: Math.floor(-Math.log(1 - random()) * 80),
      client,
      ip: addressOf(client),
      method: oneOf(METHODS),
      target: path === '/users/' ? `${path}${Math.floor(random() * 10_000)}` : path,
      status: oneOf(STATUSES),
      bytes: Math.floor(random() * 20_000),
      agent: AGENTS[client % AGENTS.length] ?? '',
    }
  }
}

/**
 * The address of a client, below 16 million: of IPv4 but for each eighth, none private.
 *
 * @param {number} client
 */
function addressOf(client) {
  // A bijection of 24 bits, so that neighbours in rank are none in the network.
  const mixed = Math.imul(client + 1, 0x9e3779b1) & 0xffffff
  if (client % 8 === 7) return `2001:db8:${(mixed >>> 16).toString(16)}:${(mixed & 0xffff).toString(16)}::1`
  return `${11 + (mixed % 100)}.${mixed >>> 16}.${(mixed >>> 8) & 255}.${mixed & 255}`
}

/**
 * Yields a log in chunks.
 *
 * @param {LogOptions} options
 * @returns {Generator<Buffer, void, void>}
 */
export function* generateLog(options) {
  const { format = combinedLine } = options
  let text = ''
  for (const request of loggedRequests(options)) {
    text += `${format(request)}\n`
    if (text.length < CHUNK) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}

/** @param {LoggedRequest} request */
export function combinedLine({ ip, endMs, method, target, status, bytes, agent }) {
  return `${ip} - - [${clfDate(endMs)}] "${method} ${target} HTTP/1.1" ${status} ${bytes} "-" "${agent}"`
}

let lastSecond = Number.NaN
let lastDate = ''

/**
 * `01/Mar/2026:00:00:00 +0000`.
 *
 * @param {number} ms
 */
export function clfDate(ms) {
  const second = Math.floor(ms / 1000)
  if (second !== lastSecond) {
    const date = new Date(second * 1000)
    lastSecond = second
    lastDate = `${String(date.getUTCDate()).padStart(2, '0')}/${MONTHS[date.getUTCMonth()]}/${date.getUTCFullYear()}:${date.toISOString().slice(11, 19)} +0000`
  }
  return lastDate
}

/**
 * Numbers from 0 to 1 by Mulberry32.
 *
 * @param {number} seed
 */
function randomOf(seed) {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
