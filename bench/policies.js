// @ts-check
// What it takes to find the policies of a request: node bench/policies.js
import { policies } from '@sluice/policies'

const POLICIES = 1000
const OVERRIDES = 10_000
const ROUNDS = 400_000

const limits = [{ limit: 100, window: '1m' }]
/** @type {Record<string, object>} */
const all = {}
for (let i = 0; i < POLICIES; i++) all[`p${i}`] = { match: { paths: [`/api/v${i % 10}/things${i}/:id`] }, limits }
const overrides = Array.from({ length: OVERRIDES }, (_, i) => ({
  policy: `p${i % POLICIES}`,
  key: { user: `u${i}` },
  limits: [{ limit: 101 + i }],
}))

const before = performance.now()
const loaded = await policies.from({
  object: { version: 1, policies: all, overrides },
  keys: { user: (request) => request.user },
})
console.log(`loaded in ${(performance.now() - before).toFixed(0)} ms`)

/** @param {number} i */
const requestOf = (i) => ({
  request: { user: `u${i}` },
  method: 'GET',
  path: `/api/v${(i % POLICIES) % 10}/things${i % POLICIES}/${i}`,
  target: '',
  ip: '192.0.2.7',
  route: undefined,
  response: { on() {}, removeListener() {} },
  header: () => undefined,
  signedCookie: () => undefined,
  getResponseHeader: () => undefined,
})
measure('one client without an override', () => requestOf(OVERRIDES))
measure('10,000 clients, each with an override of its own', (i) => requestOf(i % OVERRIDES))

/**
 * @param {string} what
 * @param {(i: number) => ReturnType<typeof requestOf>} make
 */
function measure(what, make) {
  const requests = Array.from({ length: OVERRIDES }, (_, i) => make(i))
  for (let round = 0; round < 3; round++) {
    const start = process.cpuUsage()
    for (let i = 0; i < ROUNDS; i++) loaded.match(/** @type {any} */ (requests[i % OVERRIDES]))
    const { user, system } = process.cpuUsage(start)
    if (round === 2) console.log(`${what}: ${((user + system) / ROUNDS).toFixed(2)} µs of CPU per request`)
  }
}
