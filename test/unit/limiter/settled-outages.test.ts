import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  type Meter,
  SluiceError,
  slidingLog,
  type Verdict,
} from '@sluice/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { byEffort } from '../../support/effort.js'
import { type Distant, distantStore } from '../../support/outages.js'

const RUNS = Number(process.env.SLUICE_RUNS ?? byEffort({ quick: 50, usual: 200, full: 50_000 }))
const LIMIT = 100

const TOKENS: Record<string, Limit<string>> = {
  'a fixed window': fixedWindow({ unit: 'tokens', limit: LIMIT, window: '1h' }),
  'a log': slidingLog({ unit: 'tokens', limit: LIMIT, window: '1h' }),
  'a bucket': gcra({ unit: 'tokens', limit: LIMIT, window: '1h' }),
}

interface Charge {
  readonly limiter: Limiter
  readonly verdict: Verdict
  readonly meter: Meter | undefined
  readonly actual: number
}

/** The ways in which a charge ends or goes on, by its verdict. */
const BY_VERDICT: Record<string, (charge: Charge) => Promise<boolean | undefined>> = {
  settle: ({ verdict, actual }) => verdict.settle({ tokens: actual }),
  refund: ({ limiter, verdict }) => limiter.refund('k', verdict),
  'end of a meter': async ({ meter }) => void (await meter?.end()),
  release: async ({ limiter, verdict }) => void (await limiter.release(verdict)),
  renew: async ({ limiter, verdict }) => void (await limiter.renew(verdict)),
}
/** The same by the id of the charge. */
const BY_ID: Record<string, (charge: Charge, id: string) => Promise<string>> = {
  settle: ({ limiter, actual }, id) => limiter.settle(id, { tokens: actual }),
  refund: ({ limiter }, id) => limiter.refund(id),
  release: ({ limiter }, id) => limiter.release(id),
  renew: ({ limiter }, id) => limiter.renew(id),
}
const course = fc.record({
  limit: fc.constantFrom(...Object.keys(TOKENS)),
  decide: fc.constantFrom('local', 'allow', 'deny'),
  ways: fc.array(
    fc.record({
      by: fc.constantFrom('verdict', 'id'),
      way: fc.constantFrom(...Object.keys(BY_VERDICT)),
      isAway: fc.boolean(),
    }),
    { minLength: 1, maxLength: 3 },
  ),
  isKept: fc.boolean(),
  estimate: fc.nat(LIMIT),
  actual: fc.nat(LIMIT + 20),
  step: fc.constantFrom(0, 1, 7, 30),
  chunks: fc.array(fc.record({ units: fc.nat(40), isAway: fc.boolean() }), { maxLength: 6 }),
  isAway: fc.boolean(),
  onExhausted: fc.constantFrom('cut', 'finish'),
  share: fc.constantFrom(1, 0.5),
})

type Decide = 'local' | 'allow' | 'deny'

function limiterOn(store: Distant, decide: Decide, limit: string, isKept: boolean, share?: number): Limiter {
  return createLimiter<string>({
    name: 'chat',
    store,
    limits: [TOKENS[limit] as Limit<string>, concurrency({ limit: 5, ttl: '1h' })],
    unavailable: { decide, ...(share && { share }) },
    ...(isKept && { charges: { keep: '1h' } }),
  })
}

const isUnavailable = (error: unknown) => error instanceof SluiceError && error.code === 'STORE_UNAVAILABLE'

describe('whenever an outage begins and ends', () => {
  test('a charge ends without an error, in every way, and only calls by id report that the store is away', async () => {
    await fc.assert(
      fc.asyncProperty(course, async ({ limit, decide, ways, isKept, estimate, actual, step, chunks, ...more }) => {
        const store = distantStore(() => 1_000_000_000)
        const limiter = limiterOn(store, decide as Decide, limit, isKept)
        store.isAway = more.isAway
        const verdict = await limiter.consume('k', { cost: { tokens: estimate } })
        const { onExhausted } = more as { onExhausted: 'cut' }
        const meter = step > 0 ? verdict.meter('tokens', { step, onExhausted }) : undefined
        for (const { units, isAway } of chunks) {
          store.isAway = isAway
          expect(await meter?.add(units)).toBeTypeOf(meter ? 'boolean' : 'undefined')
        }
        const charge = { limiter, verdict, meter, actual }
        for (const { by, way, isAway } of ways) {
          store.isAway = isAway
          const byId = BY_ID[way]
          if (by === 'id' && byId && verdict.id !== undefined) {
            const outcome = await byId(charge, verdict.id).catch((error) => {
              if (!isAway || !isUnavailable(error)) throw error
              return 'away'
            })
            expect(['done', 'done before', 'unknown', 'away']).toContain(outcome)
          } else {
            const returnsBoolean = way === 'settle' || way === 'refund'
            expect(await BY_VERDICT[way]?.(charge)).toBeTypeOf(returnsBoolean ? 'boolean' : 'undefined')
          }
        }
      }),
      { numRuns: RUNS },
    )
  })

  test('a process counts on from the last settled value, in whatever way it was settled', async () => {
    await fc.assert(
      fc.asyncProperty(course, async ({ limit, ways, isKept, estimate, actual, step, chunks, share }) => {
        const store = distantStore(() => 1_000_000_000)
        const limiter = limiterOn(store, 'local', limit, isKept, share)
        const verdict = await limiter.consume('k', { cost: { tokens: estimate } })
        const meter = step > 0 ? verdict.meter('tokens', { step }) : undefined
        for (const { units } of chunks) await meter?.add(units)
        const charge = { limiter, verdict, meter, actual }
        for (const { by, way } of ways) {
          const byId = by === 'id' && verdict.id !== undefined ? BY_ID[way] : undefined
          await (byId ? byId(charge, verdict.id as string) : BY_VERDICT[way]?.(charge))
        }
        // A limiter on a store of its own, so that this process has not seen what it found.
        const other = limiterOn({ ...store }, 'local', limit, false)
        const inStore = LIMIT - (await leftBy(other))
        store.isAway = true
        // Clients that have used up to half of a limit begin with the whole limit.
        const used = inStore > LIMIT / 2 ? Math.ceil(inStore * share) : 0
        expect(await leftBy(limiter)).toBe(LIMIT * share - used)
      }),
      { numRuns: RUNS },
    )
  })
})

async function leftBy(limiter: Limiter): Promise<number> {
  const { units } = await limiter.peek('k', { cost: { tokens: 0 } })
  return units.tokens?.remaining as number
}

test('a stream that an outage interrupts under "allow" is settled to its total, as far as limits counted it', async () => {
  const store = distantStore(() => 1_000_000_000)
  const limiter = limiterOn(store, 'allow', 'a fixed window', false)
  const stream = async (total: number, isBack: boolean) => {
    await limiter.reset('k')
    const verdict = await limiter.consume('k', { cost: { tokens: 10 } })
    const meter = verdict.meter('tokens', { step: 10 })
    await meter.add(20)
    store.isAway = true
    await meter.add(30)
    store.isAway = !isBack
    const isSettled = await verdict.settle({ tokens: total })
    store.isAway = false
    return { isSettled, left: await leftBy(limiter) }
  }
  // 20 were counted, and 30 admitted without a limit.
  expect(await stream(15, false)).toEqual({ isSettled: false, left: 80 })
  expect(await stream(50, true)).toEqual({ isSettled: false, left: 80 })
  expect(await stream(25, true)).toEqual({ isSettled: false, left: 80 })
  expect(await stream(15, true)).toEqual({ isSettled: true, left: 85 })
  expect(await stream(5, true)).toEqual({ isSettled: true, left: 95 })
  expect(await stream(60, true)).toEqual({ isSettled: true, left: 70 })
})

test('a process decides by its share after a kept charge of a calendar window was settled above its estimate', async () => {
  const store = distantStore(() => 1_000_000_000)
  const limiter = createLimiter<string>({
    name: 'chat',
    store,
    limits: [fixedWindow({ unit: 'tokens', limit: 10, window: 'day' })],
    charges: { keep: '1h' },
    unavailable: { share: 0.5 },
  })
  const verdict = await limiter.consume('k', { cost: { tokens: 0 } })
  await verdict.settle({ tokens: 8 })
  store.isAway = true
  // Of its 5, those that are used: 4.
  expect(await limiter.consume('k', { cost: { tokens: 2 } })).toMatchObject({ kind: 'unavailable', allowed: false })
  expect(await limiter.consume('k', { cost: { tokens: 1 } })).toMatchObject({ kind: 'unavailable', allowed: true })
})
