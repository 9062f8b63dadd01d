// A server that shares a limit with another package, bundled by `npm run deep -- bundlers` in several ways. With one copy of the
// core, what one package makes the other takes.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { METRICS, startCounting } from '@sluice/core/metrics'
import { createLimiter, rateLimit, redisStore, Verdict } from '@sluice/express'
import { sluiceMetrics } from '@sluice/prometheus'
import express from 'express'
import { Redis } from 'ioredis'
import * as other from 'other-package'
import { Registry } from 'prom-client'

const client = new Redis(process.env.REDIS_URL)
const store = redisStore(client, { timeout: '10s' })
await store.ready()
const registry = new Registry()
sluiceMetrics({ register: registry })
const counting = startCounting()

const name = `bundled-${process.pid}-${Date.now()}`
const limits = { name, store, limit: 3, window: '1h' }
const limited = rateLimit({ ...limits, key: other.byClient })
assert.equal(limited.name, 'rateLimit')
assert.equal(other.Verdict, Verdict)

// One limit: the other package spends a unit of it, and refunds what this one has spent.
const theirs = other.makeLimiter({ ...limits, key: other.byClient })
const ours = createLimiter({ ...limits, key: other.byClient })
const verdict = await ours.consume({ ip: '127.0.0.1' })
assert.equal((await theirs.consume({ ip: '127.0.0.1' })).remaining, 1)
assert.equal(await theirs.refund({ ip: '127.0.0.1' }, verdict), true)

const app = express().use(limited)
app.get('/', (_req, res) => res.send('done'))
const server = createServer(app)
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
const statuses = []
for (let n = 0; n < 3; n++) {
  const response = await fetch(`http://127.0.0.1:${server.address().port}/`)
  await response.text()
  statuses.push(response.status)
}
assert.deepEqual(statuses, [200, 200, 429])
server.closeAllConnections()
server.close()

// Metrics of both packages are counted, by whatever reads them.
const decided = counting.read().decisions.reduce((sum, { count }) => sum + count, 0)
assert.equal(decided, 5)
assert.match(await registry.metrics(), new RegExp(`policy="${name}".*} [1-9]`))
assert(METRICS.length > 10)

// In a bundle, functions and methods keep their names in stack traces. Beside the core, they begin with this program.
const { stack } = await ours.consume({ ip: '' }).catch((error) => error)
assert.match(stack, /at .*(consume|identitiesOf|checkedKey|\.mjs:)/)

await store.close()
client.disconnect()
console.log('one copy')
