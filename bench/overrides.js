// @ts-check
// The cost of a million overrides in PostgreSQL: DATABASE_URL=postgres://… node --expose-gc bench/overrides.js
// It works in a separate schema, `sluice_bench`, which it creates and removes.
import { migratePostgres, PostgresDocuments, policies } from '@sluice/policies'
import pg from 'pg'

const OVERRIDES = Number(process.env.OVERRIDES ?? 1_000_000)
const ROUNDS = 200_000
const SCHEMA = 'sluice_bench'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
/** @type {import('@sluice/policies').Query} */
const query = (text, values) => pool.query(text, values && [...values])
const longest = longestPause()

await pool.query(`DROP SCHEMA IF EXISTS ${SCHEMA} CASCADE; CREATE SCHEMA ${SCHEMA}`)
await migratePostgres(query, SCHEMA)
const document = 'version: 1\npolicies: { api: { key: user, limits: [{ limit: 100, window: 1m }] } }'
await new PostgresDocuments(query, 'default', SCHEMA).save(document, 0, 'bench')
await measured(`inserted ${OVERRIDES} overrides by one statement`, () =>
  pool.query(
    `INSERT INTO ${SCHEMA}.sluice_overrides (policy, kind, value, limits)
     SELECT 'api', 'user', 'user-' || i, jsonb_build_array(jsonb_build_object('limit', 200 + i % 10))
     FROM generate_series(1, $1::integer) AS i`,
    [OVERRIDES],
  ),
)
await pool.query(`VACUUM ANALYZE ${SCHEMA}.sluice_overrides`)
// The memory of the module is not part of the overrides.
const without = await load({ overrides: false })
await without.close()
const before = memory()
longest.reset()
const loaded = await measured('loaded, as a process does at its start', () => load({}))
console.log(`longest pause of the event loop meanwhile: ${longest.read().toFixed(1)} ms`)
console.log(`memory: ${((memory() - before) / 2 ** 20).toFixed(1)} MiB`)

/** @param {object} options */
function load(options) {
  return policies.from({
    postgres: { pool, schema: SCHEMA, lookupTimeoutMs: 5000, ...options },
    keys: { user: (request) => request.user },
    loadTimeout: 600_000,
  })
}

/** @param {string} user */
const requestOf = (user) => /** @type {any} */ ({ request: { user }, method: 'GET', path: '/api', ip: '192.0.2.7' })

const queries = await statements()
await perRequest('clients without an override, each another', (i) => requestOf(`nobody-${i}`))
console.log(`statements of look-ups for these: ${(await statements()) - queries}`)
await perRequest('one client with an override', () => requestOf('user-7'))
await perRequest('clients with overrides that are held', (i) => requestOf(`user-${(i % 5000) + 1}`))

const times = []
for (let i = 0; i < 2000; i++) {
  const start = performance.now()
  await loaded.match(requestOf(`user-${OVERRIDES - i}`))
  times.push(performance.now() - start)
}
times.sort((a, b) => a - b)
console.log(`looked up, one after the other: p50 ${times[1000]?.toFixed(2)} ms, p99 ${times[1980]?.toFixed(2)} ms`)

longest.reset()
await pool.query(`UPDATE ${SCHEMA}.sluice_overrides SET limits = '[{"limit": 7}]' WHERE value LIKE 'user-1%'`)
const last = `user-1${'0'.repeat(String(OVERRIDES).length - 2)}`
await measured('a tenth of them changed, in force after', async () => {
  for (;;) {
    const matched = await loaded.match(requestOf(last))
    if (matched?.options.limits?.[0]?.limit === 7) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
})
console.log(`longest pause of the event loop meanwhile: ${longest.read().toFixed(1)} ms`)

await loaded.close()
await pool.query(`DROP SCHEMA ${SCHEMA} CASCADE`)
await pool.end()
longest.end()

/**
 * @template Result
 * @param {string} what
 * @param {() => Promise<Result>} step
 */
async function measured(what, step) {
  const start = performance.now()
  const result = await step()
  console.log(`${what}: ${(performance.now() - start).toFixed(0)} ms`)
  return result
}

/**
 * @param {string} what
 * @param {(i: number) => any} make
 */
async function perRequest(what, make) {
  const requests = Array.from({ length: 10_000 }, (_, i) => make(i))
  for (const request of requests) await loaded.match(request)
  const start = process.cpuUsage()
  for (let i = 0; i < ROUNDS; i++) loaded.match(requests[i % requests.length])
  const { user, system } = process.cpuUsage(start)
  console.log(`${what}: ${((user + system) / ROUNDS).toFixed(2)} µs of CPU per request`)
}

function memory() {
  globalThis.gc?.()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

/** Statements that have looked for overrides by their hashes. */
async function statements() {
  const scans = `SELECT idx_scan FROM pg_stat_user_indexes WHERE schemaname = '${SCHEMA}' AND indexrelname = 'sluice_overrides_hash'`
  // Backends report once a second.
  await new Promise((resolve) => setTimeout(resolve, 1500))
  return Number((await pool.query(scans)).rows[0]?.idx_scan)
}

/** The longest time without a turn for anything else. */
function longestPause() {
  let most = 0
  let at = performance.now()
  const timer = setInterval(() => {
    const now = performance.now()
    most = Math.max(most, now - at - 1)
    at = now
  }, 1)
  return {
    read: () => most,
    reset() {
      most = 0
      at = performance.now()
    },
    end: () => clearInterval(timer),
  }
}
