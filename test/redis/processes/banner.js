// One process of a service whose policy bans, on the built package as users get it. Receives runs over IPC, and returns results.
import * as sluice from '@sluice/core'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
// A long timeout: the test is about decisions on a busy machine, not about their speed.
const store = sluice.redisStore(client, { timeout: 15_000 })

/** @param {{ name: string, ban: sluice.BanOptions<string>, key: string, requests: number, strikes?: boolean }} run */
async function answer({ name, ban, key, requests, strikes = false }) {
  const limiter = sluice.createLimiter({ name, store, limits: [sluice.perHour(5)], ban })
  const pending = Array.from({ length: requests }, () => (strikes ? limiter.strike(key) : limiter.consume(key)))
  const results = await Promise.all(pending)
  process.send?.({
    reasons: results.map((verdict) => (verdict instanceof sluice.Verdict ? (verdict.reason ?? 'admitted') : 'struck')),
    known: store.blocks.known,
    bans: results.flatMap((verdict) => (verdict instanceof sluice.Verdict ? (verdict.ban ?? []) : (verdict ?? []))),
  })
}

process.on('message', answer)
// The process ends with the test.
process.once('disconnect', () => process.exit())
client.once('ready', () => process.send?.('ready'))
