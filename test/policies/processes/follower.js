// One process of a service whose policies are in PostgreSQL, on the built package as users get it. Reports its limits
// over IPC.
import { policies } from '@sluice/policies'
import pg from 'pg'

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL })
const loaded = await policies.from({
  postgres: { pool, lookupTimeout: 10_000 },
  keys: { user: (request) => request.user },
})
await pool.end()

/** @param {string} user */
async function report(user) {
  const context = { request: { user }, method: 'GET', path: '/' }
  const matched = await loaded.match(/** @type {any} */ (context))
  process.send?.(matched?.options.limits?.[0]?.limit)
}

process.on('message', report)
// Never outlive the test.
process.once('disconnect', () => process.exit())
process.send?.('ready')
