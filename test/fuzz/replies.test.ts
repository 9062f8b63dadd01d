import { setTimeout as sleep } from 'node:timers/promises'
import { createLimiter, perMinute, perSecond, redisStore, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeAll } from 'vitest'
import { namesOf, singleClients } from '../support/clients.js'
import { until } from '../support/until.js'
import { expectSaid, must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { startLiar } from './support/liar.js'
import { bytes, resp } from './support/resp.js'
import { standIn } from './support/stand-in.js'

/** What no reply may become: an admission by numbers that are none. */
function expectCounted(verdict: Verdict): void {
  const numbers = [verdict.remaining, verdict.resetAfterMs, verdict.delayMs, verdict.cost]
  for (const limit of verdict.limits) numbers.push(limit.remaining, limit.resetAfterMs, limit.retryAfterMs ?? 0)
  for (const number of numbers) must(Number.isSafeInteger(number), 'whole numbers', verdict)
  must(!verdict.allowed || verdict.retryAfterMs === 0, 'no wait for who is admitted', verdict)
  must(!verdict.block || typeof verdict.block.reason === 'string', 'a reason in words', verdict)
}

const LIMITS = [perSecond(5), perMinute(50)]
const limiterOf = (store: ReturnType<typeof redisStore>) => createLimiter({ name: 'fuzz', store, limits: LIMITS })

/** Values as clients make them of replies; numbers near those of the script among them. */
const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: -3, max: 100_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(null, undefined, 'OK', '5', 'NaN', Number.NaN, 1.5, 2 ** 53, 5n, '', -0) },
  { weight: 1, arbitrary: fc.anything() },
)
const reply: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.array(value, { maxLength: 14 }) },
  // As long as the answer to one decision on two limits, and to two.
  { weight: 4, arbitrary: fc.array(value, { minLength: 7, maxLength: 18, size: 'max' }) },
  { weight: 1, arbitrary: value },
  {
    weight: 1,
    arbitrary: fc.constantFrom(new Error('ERR no'), new Error('NOSCRIPT No matching script'), new Map(), new Set()),
  },
)

let answer: unknown
const answering = limiterOf(
  redisStore(
    standIn(() => {
      if (answer instanceof Error) throw answer
      return answer
    }),
  ),
)

fuzz('replies', 'whatever a client hands over for a reply is a verdict in whole numbers or STORE_UNAVAILABLE', {
  inputs: fc.record({ reply, decisions: fc.integer({ min: 1, max: 3 }) }),
  async check({ reply, decisions }) {
    answer = reply
    const asked = Array.from({ length: decisions }, async (_, n) => {
      await expectSaid(['STORE_UNAVAILABLE'], async () => expectCounted(await answering.consume(`k${n}`)))
    })
    await Promise.all(asked)
    for (const call of ['reset', 'unblock'] as const) {
      await expectSaid(['STORE_UNAVAILABLE'], () => answering[call]('k'))
    }
    await expectSaid(['STORE_UNAVAILABLE'], () => answering.block('k', { for: '1h' }))
  },
})

const TIMEOUT_MS = 60
/** For a machine that does other things, too. */
const SLACK_MS = 1000

const liar = await startLiar()
afterAll(() => liar.stop())

/** One decision, which ends in time whatever comes. */
async function decideInTime(limiter: ReturnType<typeof limiterOf>): Promise<void> {
  const startedAt = performance.now()
  await expectSaid(['STORE_UNAVAILABLE'], async () => expectCounted(await limiter.consume('k')))
  const tookMs = performance.now() - startedAt
  must(tookMs < TIMEOUT_MS + SLACK_MS, 'an end by the deadline', tookMs)
}

/** Waits until the server is asked again. */
async function connected(limiter: ReturnType<typeof limiterOf>): Promise<void> {
  liar.answer = { chunks: ['-ERR connected\r\n'], end: 'stay' }
  await until('the store is connected', async () => {
    return /connected/.test(await expectSaid(['STORE_UNAVAILABLE'], () => limiter.consume('k')))
  })
}

/** Decides by this reply. Resolves to whether it came to that. */
async function isSent(limiter: ReturnType<typeof limiterOf>, reply: string): Promise<boolean> {
  liar.answer = { chunks: [reply], end: 'stay' }
  const { runs } = liar
  await decideInTime(limiter)
  return liar.runs > runs
}

/**
 * What no Redis ever says, and ioredis throws outside of any promise for, which ends the process: a nil that
 * nobody asked for (6: "Cannot read properties of null"), lengths that are none (5: "Invalid array length").
 */
const ENDS_IOREDIS = /[$*](?!\d)|_/

for (const kind of namesOf(singleClients)) {
  const owned = singleClients[kind](liar.port)
  const limiter = limiterOf(redisStore(owned.client, { timeoutMs: TIMEOUT_MS }))
  afterAll(() => owned.close())
  beforeAll(() => connected(limiter))

  fuzz('replies', `any reply to ${kind} ends a decision in time, and in whole numbers or STORE_UNAVAILABLE`, {
    inputs: resp,
    dearness: 20,
    async check(reply) {
      // A reply may have made it look for another server meanwhile.
      for (let tries = 0; !(await isSent(limiter, reply)); tries++) {
        must(tries === 0, 'the script to be sent')
        await connected(limiter)
      }
    },
  })

  fuzz('replies', `a server that breaks off, mumbles or falls silent never holds up or ends a program with ${kind}`, {
    inputs: fc.record({
      chunks: fc.array(bytes, { maxLength: 4 }),
      end: fc.constantFrom('stay' as const, 'close' as const, 'reset' as const),
    }),
    dearness: 1000,
    async check({ chunks, end }) {
      if (kind.startsWith('ioredis') && ENDS_IOREDIS.test(chunks.join(''))) return
      await connected(limiter)
      liar.answer = { chunks, end }
      const before = process.memoryUsage().rss
      // Some in the same turn, some after it, some on the next connection.
      await Promise.all([decideInTime(limiter), decideInTime(limiter), sleep(5).then(() => decideInTime(limiter))])
      must(process.memoryUsage().rss - before < 200e6, 'bounded memory', process.memoryUsage().rss - before)
      // What is still to come would be taken for later answers.
      await liar.cut()
    },
  })
}
