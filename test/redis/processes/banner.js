// One process of a service whose policy bans, on the built package as users get it. Told what to do over IPC, and answers.
import * as sluice from '@sluice/core'
import { Redis } from 'ioredis'

const client = new Redis(process.env.REDIS_URL ?? '')
// Patient: this test is about what is decided on a busy machine, not about how fast.
const store = sluice.redisStore(client, { timeout: 15_000 })

/** @param {{ name: string, ban: sluice.BanOptions<string>, key: string, requests: number, strikes?: boolean }} run */
async function answer({ name, ban, key, requests, strikes = false }) {
  const limiter = sluice.createLimiter({ name, store, limits: [sluice.perHour(5)], ban })
  const asked = Array.from({ length: requests }, () => (strikes ? limiter.strike(key) : limiter.consume(key)))
  const told = await Promise.all(asked)
  process.send?.({
    reasons: told.map((verdict) => (verdict instanceof sluice.Verdict ? (verdict.reason ?? 'admitted') : 'struck')),
    known: store.blocks.known,
    bans: told.flatMap((verdict) => (verdict instanceof sluice.Verdict ? (verdict.ban ?? []) : (verdict ?? []))),
  })
}

process.on('message', answer)
// Never outlive the test.
process.once('disconnect', () => process.exit())
client.once('ready', () => process.send?.('ready'))
