// Runs alone: it measures memory.
import { setTimeout as sleep } from 'node:timers/promises'
import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  leakyBucket,
  perMinute,
  perSecond,
  redisStore,
  slidingWindow,
  type Verdict,
} from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll, describe } from 'vitest'
import { namesOf, singleClients } from '../../support/clients.js'
import { standIn } from '../../support/stand-in.js'
import { until } from '../../support/until.js'
import { expectSaid, must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { type Liar, type Lie, startLiar } from './support/liar.js'
import { FORMS, packed, spoilt } from './support/packed.js'
import { bulk, bytes, resp } from './support/resp.js'

/** Fails for an admission by invalid numbers, which no reply may cause. */
function expectCounted(verdict: Verdict): void {
  const { remaining, resetAfterMs, delayMs, cost, retryAfterMs = 0 } = verdict
  const { remainingMs = 0 } = verdict.block ?? {}
  const isForEver = remainingMs === Number.POSITIVE_INFINITY && verdict.retryAfterMs === undefined
  const numbers = [remaining, resetAfterMs, delayMs, cost, retryAfterMs, isForEver ? 0 : remainingMs]
  for (const limit of verdict.limits) numbers.push(limit.remaining, limit.resetAfterMs, limit.retryAfterMs ?? 0)
  for (const number of numbers) must(Number.isSafeInteger(number) && number >= 0, 'whole numbers', verdict)
  must(!verdict.allowed || verdict.retryAfterMs === 0, 'no wait for who is admitted', verdict)
  must(!verdict.block || typeof verdict.block.reason === 'string', 'a reason in words', verdict)
}

const TWO = [perSecond(5), perMinute(50)]
const limiterOf = (store: ReturnType<typeof redisStore>, limits: readonly Limit[] = TWO): Limiter =>
  createLimiter({ name: 'fuzz', store, limits })

/** Limits of each kind, and the form of the replies about them. */
const PLANS = [
  { limits: TWO, forms: [FORMS.logOfTwo] },
  { limits: [perMinute(5)], forms: [FORMS.log] },
  { limits: [gcra({ limit: 5, window: '1s' })], forms: [FORMS.bucket] },
  { limits: [leakyBucket({ leak: 5, every: '1s', capacity: 9, queue: true })], forms: [FORMS.bucket] },
  { limits: [fixedWindow({ limit: 5, window: '1s' })], forms: [FORMS.counter] },
  { limits: [slidingWindow({ limit: 5, window: '1m' })], forms: [FORMS.segments] },
  { limits: [concurrency({ limit: 5 })], forms: [FORMS.concurrency] },
  {
    limits: [fixedWindow({ limit: 5, window: '1m' }), gcra({ limit: 5, window: '1s' })],
    forms: [FORMS.counter, FORMS.bucket],
  },
]

/** Replies of clients that are not bytes. */
const otherwise: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom(null, undefined, 'OK', '5', 5, 1.5, 5n, '', [], [[]], new Map(), new Set()),
  fc.constantFrom(new Error('ERR no'), new Error('NOSCRIPT No matching script'), new Error('')),
  fc.string({ unit: 'binary', minLength: 20, maxLength: 60 }),
  fc.array(fc.oneof(fc.integer(), fc.uint8Array()), { maxLength: 20 }),
  fc.anything(),
)

const lie = fc.oneof(
  ...PLANS.flatMap(({ limits, forms }) =>
    [1, 2].map((decisions) => {
      const whole = packed(forms, decisions)
      const reply: fc.Arbitrary<unknown> = fc.oneof(
        { weight: 7, arbitrary: whole },
        { weight: 2, arbitrary: spoilt(whole) },
        { weight: 1, arbitrary: otherwise },
      )
      return fc.record({ limits: fc.constant(limits), decisions: fc.constant(decisions), reply })
    }),
  ),
)

let tried = 0
let decided = 0
afterAll(() => must(decided > tried / 4, 'many replies to be accepted', { tried, decided }))

fuzz('replies', 'any reply of a client is a verdict in whole numbers, or STORE_UNAVAILABLE', {
  inputs: lie,
  async check({ limits, decisions, reply }) {
    const client = standIn(() => {
      if (reply instanceof Error) throw reply
      return reply
    })
    // A new store each time, as the breaker opens after several invalid replies.
    const store = redisStore(client)
    const limiter = limiterOf(store, limits)
    const decide = async (key: string) => {
      const verdict = await limiter.consume(key)
      expectCounted(verdict)
      tried++
      if (verdict.kind === 'decided') decided++
    }
    await Promise.all(Array.from({ length: decisions }, (_, n) => decide(`k${n}`)))
    // From the deny cache, if it was refused.
    await decide('k0')
    for (const call of ['reset', 'unblock'] as const) {
      await expectSaid(['STORE_UNAVAILABLE'], () => limiter[call]('k'))
    }
    await expectSaid(['STORE_UNAVAILABLE'], () => limiter.block('k', { for: '1h' }))
    await store.close()
  },
})

const TIMEOUT_MS = 60
/** Tolerance for a busy machine: a decision that waits for a missing reply would never end. */
const SLACK_MS = 10_000

/** One admission: the time, the outcome, the instant, no newest entry, and one unit in each window. */
const HONEST = bulk(
  Buffer.from(['01b000000000', '01', '01b000000000', '000000000000', '00000001', '00000001'].join(''), 'hex'),
)

const TRUTH: Lie = { chunks: [HONEST], end: 'stay' }

let keys = 0
/** A new key, which the deny cache does not know. */
const freshKey = () => `k${keys++}`

/** One decision, which ends in time whatever the reply. */
async function decideInTime(limiter: Limiter): Promise<void> {
  const startedAt = performance.now()
  expectCounted(await limiter.consume(freshKey()))
  const tookMs = performance.now() - startedAt
  must(tookMs < TIMEOUT_MS + SLACK_MS, 'an end by the deadline', tookMs)
}

/**
 * Replies that no Redis sends. ioredis throws for them outside of any promise, which ends the process. They are an
 * unrequested nil (6: "Cannot read properties of null") and invalid lengths (5: "Invalid array length").
 */
const ENDS_IOREDIS = /[$*](?!\d{1,8}\r\n)|_/

describe.each(namesOf(singleClients))('%s', (kind) => {
  let liar: Liar
  let limiter: Limiter
  let end: () => Promise<void>
  beforeAll(async () => {
    liar = await startLiar()
    const owned = singleClients[kind](liar.port)
    const store = redisStore(owned.client, { timeout: TIMEOUT_MS })
    limiter = limiterOf(store)
    // Before the next client starts, as a reply that ends one must not reach another.
    end = async () => {
      await store.close()
      owned.close()
      await liar.stop()
    }
  })
  afterAll(() => end())

  /** Decides by a valid reply, after which no earlier reply has an effect. */
  async function recover(): Promise<void> {
    liar.answer = TRUTH
    await until('the store decides', async () => (await limiter.consume(freshKey())).kind === 'decided')
  }

  fuzz('replies', `a decision over ${kind} ends in time, in whole numbers or STORE_UNAVAILABLE, whatever the reply`, {
    inputs: fc.oneof(
      { weight: 2, arbitrary: packed([FORMS.logOfTwo], 1).map(bulk) },
      { weight: 1, arbitrary: spoilt(packed([FORMS.logOfTwo], 1)).map(bulk) },
      { weight: 1, arbitrary: resp },
    ),
    dearness: 20,
    async check(reply) {
      // Repeated, as on a busy machine a client may be reconnecting, or miss its deadline before it sends the script.
      await until('the script to be sent', async () => {
        await recover()
        liar.answer = { chunks: [reply], end: 'stay' }
        const { runs } = liar
        await decideInTime(limiter)
        return liar.runs > runs
      })
    },
  })

  fuzz(
    'replies',
    `a server that disconnects, sends nonsense or falls silent never blocks or ends a program with ${kind}`,
    {
      inputs: fc.record({
        chunks: fc.array(bytes, { maxLength: 4 }),
        end: fc.constantFrom('stay' as const, 'close' as const, 'reset' as const),
      }),
      dearness: 2000,
      async check({ chunks, end }) {
        if (kind.startsWith('ioredis') && ENDS_IOREDIS.test(chunks.join(''))) return
        await recover()
        liar.answer = { chunks, end }
        const before = process.memoryUsage().rss
        // Decisions in the same turn, after it, and on the next connection.
        await Promise.all([decideInTime(limiter), decideInTime(limiter), sleep(5).then(() => decideInTime(limiter))])
        must(process.memoryUsage().rss - before < 200e6, 'bounded memory', process.memoryUsage().rss - before)
        // Outstanding replies on this connection or the next would be matched to later requests.
        liar.answer = TRUTH
        await liar.cut()
      },
    },
  )
})
