// @ts-check
// The cost of finding the policies of a request, and of deciding by them: node bench/policies.js
import { memoryStore } from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import { policies } from '@sluice/policies'

const POLICIES = 1000
const OVERRIDES = 10_000
const ROUNDS = 400_000

const limits = [{ algorithm: 'gcra', limit: 100_000_000, window: '1m' }]
/** @type {Record<string, object>} */
const all = {}
for (let i = 0; i < POLICIES; i++)
  all[`p${i}`] = { key: 'user', match: { paths: [`/api/v${i % 10}/things${i}/:id`] }, limits }
const own = Array.from({ length: OVERRIDES }, (_, i) => ({
  policy: `p${i % POLICIES}`,
  key: { user: `u${i}` },
  limits: [{ limit: 200_000_000 + i }],
}))
// One for all clients of a policy whose names start like this.
const shared = Object.keys(all).map((policy) => ({
  policy,
  prefix: { user: 'start-' },
  limits: [{ limit: 300_000_000 }],
}))
const overrides = [...own, ...shared]

const before = performance.now()
const loaded = await policies.from({
  object: { version: 1, policies: all, overrides },
  keys: { user: (request) => request.user },
})
console.log(`loaded in ${(performance.now() - before).toFixed(0)} ms`)

// One policy alone, so that the cost of overrides is not that of many policies.
const single = await policies.from({
  object: {
    version: 1,
    policies: { p: { key: 'user', limits } },
    overrides: [
      ...Array.from({ length: OVERRIDES }, (_, i) => ({
        policy: 'p',
        key: { user: `u${i}` },
        limits: [{ limit: 200_000_000 + i }],
      })),
      ...Array.from({ length: OVERRIDES }, (_, i) => ({
        policy: 'p',
        key: { user: `plan-${i}` },
        limits: [{ limit: 400_000_000 + (i % 10) }],
      })),
      { policy: 'p', prefix: { user: 'start-' }, limits: [{ limit: 300_000_000 }] },
    ],
  },
  keys: { user: (request) => request.user },
})

/**
 * @param {number} i
 * @param {string} user
 */
const requestOf = (i, user) => ({
  request: { user },
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
/** @typedef {import('@sluice/core').HttpContext<any>} Context */
/** @param {Context} context */
const match = (context) => loaded.match(context)
// Fresh responses, as two decisions on one response cause a warning.
const guard = createGuard({ policies: loaded, store: memoryStore(), headers: false })
/** @param {Context} context */
const decide = (context) => guard({ ...context, response: { ...context.response } })

measure('matching, one client without an override', match, () => requestOf(OVERRIDES, `u${OVERRIDES}`))
measure('matching, 10,000 clients, each with an override of its own', match, (i) => requestOf(i, `u${i}`))
measure('a decision in memory, 10,000 clients without an override', decide, (i) => requestOf(i, `x${i}`))
measure('a decision in memory, 10,000 clients under 1,000 overrides', decide, (i) => requestOf(i, `start-${i}`))
measure('a decision in memory, 10,000 clients, each with an override of its own', decide, (i) => requestOf(i, `u${i}`))

const guardOfOne = createGuard({ policies: single, store: memoryStore(), headers: false })
/** @param {Context} context */
const decideOne = (context) => guardOfOne({ ...context, response: { ...context.response } })
measure('one policy, one client with an override', decideOne, () => requestOf(0, 'u7'))
measure('one policy, 10,000 clients without an override', decideOne, (i) => requestOf(i, `x${i}`))
measure('one policy, 10,000 clients under one override', decideOne, (i) => requestOf(i, `start-${i}`))
measure('one policy, 10,000 overrides of ten kinds', decideOne, (i) => requestOf(i, `plan-${i}`))
measure('one policy, 10,000 overrides, each with other numbers', decideOne, (i) => requestOf(i, `u${i}`))

/**
 * @param {string} what
 * @param {(context: Context) => unknown} work
 * @param {(i: number) => object} make
 */
function measure(what, work, make) {
  const requests = Array.from({ length: OVERRIDES }, (_, i) => /** @type {Context} */ (make(i)))
  for (let round = 0; round < 3; round++) {
    const start = process.cpuUsage()
    for (let i = 0; i < ROUNDS; i++) work(/** @type {Context} */ (requests[i % OVERRIDES]))
    const { user, system } = process.cpuUsage(start)
    if (round === 2) console.log(`${what}: ${((user + system) / ROUNDS).toFixed(2)} µs of CPU per request`)
  }
}
