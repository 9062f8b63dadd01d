import {
  concurrency,
  fixedWindow,
  gcra,
  keyed,
  perMinute,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import { createLimiter } from '../../contract/create-limiter.js'
import { randomFrom } from '../../contract/policies.js'
import type { Check, Venue } from './check.js'
import { replay } from './replay.js'
import { type Policy, Recorder, type Scenario } from './scenario.js'

const WALKS = 8
const STEPS = 60
const KEEP_MS = 5000
/** By which keys outlive their end, as Redis's clock is another one. */
const SLACK_MS = 3_600_000

const all = keyed('all', () => 'all')
const alone: Policy = {
  name: 'kept',
  limits: [fixedWindow({ limit: 12, window: '7s' })],
  charges: { keep: KEEP_MS },
}
const several: Policy = {
  name: 'kept-several',
  limits: [
    perMinute(20),
    gcra({ limit: 12, window: '9s' }),
    slidingWindow({ limit: 14, window: '10s', segments: 5, edge: 'strict' }),
    tokenBucket({ unit: 'tokens', capacity: 30, refill: 30, every: '30s' }),
    fixedWindow({ unit: 'tokens', limit: 80, window: '20s', key: all }),
    concurrency({ limit: 5, ttl: '4s' }),
    concurrency({ limit: 9, ttl: '3s', key: all }),
  ],
  charges: { keep: 2 * KEEP_MS },
}
/** The same limits for another life of ids, and charges that are not kept, in the same batches. */
const POLICIES: readonly Policy[] = [
  alone,
  several,
  { ...several, charges: { keep: KEEP_MS } },
  { name: 'plain', limits: [perMinute(9), gcra({ limit: 12, window: '9s' })] },
]

async function walk(seed: number): Promise<Scenario> {
  const random = randomFrom(1000 + seed)
  const recorder = new Recorder(POLICIES)
  const charged: { readonly limiter: number; readonly of: number }[] = []
  for (let step = 0; step < STEPS; step++) {
    const gap = random(100)
    recorder.clock.now += gap < 45 ? 0 : gap < 85 ? random(1500) : gap < 97 ? random(9000) : -random(3000)
    recorder.step()
    // Two of the policies share their states, and a batch has its decisions by policy.
    const limiter = random(POLICIES.length)
    for (let n = 1 + random(3); n > 0; n--) {
      const earlier = charged[Math.max(0, charged.length - 1 - random(8))]
      const what = random(100)
      const key = `key ${random(2)}`
      if (earlier && what < 50) {
        // A change by id reads the record first, so that other calls of its batch would overtake it.
        recorder.step()
        await change(recorder, earlier, random)
        recorder.step()
      } else if (what < 56) {
        const reset = random(2)
        await recorder.ask(async (all) => all[reset]?.reset(key))
      } else {
        const tokens = random(20)
        const cost = limiter === 1 || limiter === 2 ? { requests: random(4), tokens } : random(4)
        const of = recorder.results.length
        const verdict = await recorder.ask(async (all) => all[limiter]?.consume(key, { cost }))
        if ((verdict as Verdict).id !== undefined) charged.push({ limiter, of })
      }
    }
  }
  return recorder.scenario(`kept charges, walk ${seed}`)
}

async function change(
  recorder: Recorder,
  { limiter, of }: { readonly limiter: number; readonly of: number },
  random: (below: number) => number,
): Promise<void> {
  // By the limiter that charged, or by the one with another life of ids.
  const by = limiter > 0 && random(2) === 0 ? 3 - limiter : limiter
  const units = random(3) === 0 ? 60 : random(12)
  const what = random(6)
  await recorder.ask(async (all, verdict) => {
    const own = all[by]
    const id = (verdict as Verdict | undefined)?.id
    // A mutant may have refused it, which an earlier result has shown.
    if (!own || id === undefined) return 'no id'
    if (what === 0) return own.refund(id)
    if (what === 1) return own.release(id)
    if (what === 2) return own.renew(id)
    if (what === 3) return own.settle(id, 0)
    return own.settle(id, limiter === 0 ? { requests: units } : { tokens: units })
  }, of)
}

const keysOf = (name: string) => ({
  epoch: (key: string, prefix = 'sluice:') => `${prefix}v1:{key=${key}}:${name}:charges`,
  record: (id: string, prefix = 'sluice:') => `${prefix}v1:{charges}:${name}:charge:${id}`,
})

/** The life of a key beyond the clock of the steps, in ms. */
async function lifeOf({ redis }: Venue, key: string): Promise<number> {
  return Number(await redis.call('PTTL', key)) - SLACK_MS
}

const near = (life: number, expected: number) => life <= expected && life > expected - 2000

const livesOfKeys: Check = {
  name: 'kept charges: lives of records and epochs',
  async run(venue) {
    await venue.redis.call('FLUSHALL')
    const { store, clock } = venue
    const limiter = createLimiter({ ...several, store } as never)
    const keys = keysOf('kept-several')
    const keepMs = 2 * KEEP_MS
    const first = (await limiter.consume('ann')).id as string
    const lives = async (id: string) => [await lifeOf(venue, keys.record(id)), await lifeOf(venue, keys.epoch('ann'))]
    const [record = 0, epoch = 0] = await lives(first)
    if (!near(record, keepMs) || !near(epoch, 2 * keepMs)) return `lives are ${record} and ${epoch}`
    // An epoch that lasts long enough is not written again; a later charge writes it.
    clock.now += keepMs
    await venue.redis.call('PEXPIRE', keys.epoch('ann'), SLACK_MS + 4000)
    await limiter.consume('ann')
    const [, same = 0] = await lives(first)
    if (!near(same, 4000)) return `an epoch that lasts was written again: ${same}`
    if ((await limiter.refund(first)) !== 'unknown') return 'an id is known at its end'
    clock.now += 1
    const second = (await limiter.consume('ann')).id as string
    const [, longer = 0] = await lives(second)
    if (!near(longer, 2 * keepMs)) return `an epoch ends before its record: ${longer}`
    if ((await limiter.refund(first)) !== 'unknown') return 'an id that is over is known'
    // A renewal lets both live on.
    clock.now += keepMs / 5
    await venue.redis.call('PEXPIRE', keys.record(second), SLACK_MS + 4000)
    await limiter.renew(second)
    const [renewed = 0] = await lives(second)
    if (!near(renewed, keepMs)) return `a renewed record lives for ${renewed}`
    clock.now += 0.9 * keepMs
    await venue.redis.call('PEXPIRE', keys.epoch('ann'), SLACK_MS + 4000)
    await limiter.renew(second)
    const [, extended = 0] = await lives(second)
    if (!near(extended, 2 * keepMs)) return `an epoch ends before its renewed record: ${extended}`
    clock.now += keepMs - 1
    return (await limiter.refund(second)) === 'done' ? undefined : 'a renewed id is over too early'
  },
}

const foreignValues: Check = {
  name: 'kept charges: foreign values',
  async run(venue) {
    const { redis, store } = venue
    const keys = keysOf('kept')
    for (const foreign of ['text', 'x'.repeat(18), 'list'] as const) {
      await redis.call('FLUSHALL')
      const limiter = createLimiter({ ...alone, store } as never)
      const put = (key: string) =>
        foreign === 'list' ? redis.call('LPUSH', key, 'x') : redis.call('SET', key, foreign)
      await put(keys.epoch('ann'))
      const verdict = await limiter.consume('ann', { cost: 2 })
      if (verdict.kind !== 'decided' || verdict.id === undefined) return `no decision beside ${foreign}`
      const outcome = await limiter.refund(verdict.id)
      if (outcome !== 'done') return `${outcome} beside ${foreign}`
      await redis.call('DEL', keys.record(verdict.id))
      await put(keys.record(verdict.id))
      if (await limiter.refund('ann', verdict)) return `a foreign record is read as a charge: ${foreign}`
      if ((await limiter.peek('ann')).remaining !== 12) return 'a refund of another record'
    }
    return undefined
  },
}

const foreignPermits: Check = {
  name: 'kept charges: another value in place of permits',
  async run({ redis, store }) {
    await redis.call('FLUSHALL')
    const limiter = createLimiter({ ...several, store } as never)
    const { id } = await limiter.consume('ann')
    for (const key of ((await redis.call('KEYS', '*')) as unknown[]).map(String)) {
      // Permits are in sorted sets.
      if (String(await redis.call('TYPE', key)) === 'zset') await redis.call('SET', key, 'x')
    }
    const outcome = await limiter.renew(id as string)
    return outcome === 'unknown' ? undefined : `a renewal of lost permits is ${outcome}`
  },
}

const refusalsKeepNothing: Check = {
  name: 'kept charges: no record of a refusal',
  async run({ redis, store }) {
    await redis.call('FLUSHALL')
    const limiter = createLimiter({ ...alone, store } as never)
    for (let n = 0; n < 15; n++) await limiter.consume('ann')
    const records = await redis.call('KEYS', '*:charge:*')
    const count = (records as unknown[]).length
    return count === 12 ? undefined : `${count} records of 12 charges and 3 refusals`
  },
}

/** Checks of charges that are changed by their ids. */
export async function keptChargeChecks(): Promise<Check[]> {
  const walks = await Promise.all(Array.from({ length: WALKS }, (_, i) => walk(i + 1)))
  return [
    livesOfKeys,
    foreignValues,
    foreignPermits,
    refusalsKeepNothing,
    ...walks.map((scenario): Check => ({ name: scenario.name, run: (venue) => replay(scenario, venue) })),
  ]
}
