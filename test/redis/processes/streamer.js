// A process that streams tokens of heavy-tailed lengths against a budget, until the budget refuses all its streams. The tokens that
// each stream has sent are in a file, which outlives the process.
import { openSync, writeSync } from 'node:fs'
import * as sluice from '@sluice/core'
import { Redis } from 'ioredis'

const { REDIS_URL = '', SENT_FILE = '', STREAMS = '', BUDGET = '', STEP = '', NAME = '' } = process.env
const client = new Redis(REDIS_URL)
// A long timeout: the test is about what is charged on a busy machine, not about speed.
const store = sluice.redisStore(client, { timeout: 15_000 })
const window = { unit: 'tokens', window: '30d', anchor: 'first-request' }
const limiter = sluice.createLimiter({
  name: 'streams',
  store,
  limits: [
    sluice.fixedWindow({ ...window, limit: Number(BUDGET), key: sluice.keyed('tenant', () => 'one') }),
    // Shows what this process alone was charged.
    sluice.fixedWindow({ ...window, limit: 2 ** 40, key: sluice.keyed('process', () => NAME) }),
  ],
})
const file = openSync(SENT_FILE, 'w')
const sent = new Float64Array(Number(STREAMS))

/** Every stream of a Pareto distribution: half are below 60 tokens, and one in 250 is above 20,000. */
const randomLength = () => Math.min(200_000, Math.ceil(30 / (1 - Math.random()) ** 1.2))

/** @param {number} place */
async function stream(place) {
  const verdict = await limiter.consume({}, { cost: { tokens: 50 } })
  if (!verdict.allowed) return false
  const meter = verdict.meter('tokens', { step: Number(STEP) })
  let goesOn = true
  for (let left = randomLength(); left > 0 && goesOn; ) {
    const chunk = Math.min(left, 1 + Math.floor(Math.random() * 8))
    left -= chunk
    sent[place] = /** @type {number} */ (sent[place]) + chunk
    writeSync(file, sent, 0, sent.byteLength, 0)
    goesOn = await meter.add(chunk)
  }
  await meter.end()
  return true
}

process.once('message', async () => {
  await Promise.all(
    Array.from(sent, async (_, place) => {
      while (await stream(place));
    }),
  )
  process.send?.('done')
})
// The process ends with the test.
process.once('disconnect', () => process.exit())
client.once('ready', () => process.send?.('ready'))
