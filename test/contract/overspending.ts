import {
  gcra,
  type Limit,
  type Limiter,
  type LimitReport,
  leakyBucket,
  type Store,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import {
  type Cell,
  CHARGE,
  CONSUME,
  DEBIT,
  REFUND,
  type ResolvedLimit,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '@sluice/core/store'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { capacityOf, roomOf } from '../support/oracle/oracle.js'
import { versionsOn } from './carried.js'
import { createLimiter } from './create-limiter.js'
import { limitOf } from './limit-of.js'
import { Clock, freshKey, MIDNIGHT, type StoreUnderTest } from './store-under-test.js'
import { ALGORITHMS, always } from './traces.js'

const BUCKETS = ALGORITHMS.filter(({ title }) => /gcra|bucket/.test(title))

const WINDOW_MS = 10_000
const AMOUNTS = [20, 100, 8, 2]
const unit = 'tokens'
/** Buckets whose versions share a state. */
const CARRIED: Readonly<Record<string, (limit: number) => Limit>> = {
  GCRA: (limit) => gcra({ unit, limit, window: WINDOW_MS }),
  'GCRA with a burst': (limit) => gcra({ unit, limit, window: WINDOW_MS, burst: Math.ceil(limit / 4) }),
  'a token bucket that holds more than it refills': (limit) =>
    tokenBucket({ unit, refill: limit, every: WINDOW_MS, capacity: 120 }),
  'a token bucket at intervals': (limit) => tokenBucket({ unit, refill: limit, every: WINDOW_MS, style: 'interval' }),
  'a leaky bucket': (limit) => leakyBucket({ unit, leak: limit, every: WINDOW_MS, queue: true }),
}

/** A bucket by its numbers. At intervals, it refills at multiples of `stepMs`. */
interface Rate {
  readonly capacity: number
  readonly limit: number
  readonly windowMs: number
  readonly stepMs: number
}

/** Units that a client got at an instant: by a charge, or a debt that was charged whatever room there was. */
interface Got {
  readonly at: number
  readonly charged: number
  /** What was charged, less what was refunded. */
  cost: number
  readonly isDebt?: true
}

/** What one client gets, as the store of its limit is asked for it by charges, settlements, meters and refunds. */
class Account {
  readonly got: Got[] = []
  readonly #refunds: { readonly at: number; readonly cost: number }[] = []
  /** What was charged and is not owed, in unit·ms. */
  readonly #forgiven: { readonly at: number; readonly amount: number }[] = []
  readonly #of = new Map<StoreResult, Got>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The store, with its requests noted here. */
  watch(store: Store): Store {
    const decide = async (request: StoreRequest) => {
      if (request.op !== DEBIT) return this.#note(request, await store.decide(request))
      const before = await this.#owed(store, request)
      const result = await store.decide(request)
      const [{ limits }] = request.plan.cells as [Cell]
      const [{ windowMs }] = limits as [ResolvedLimit]
      const owedMore = (await this.#owed(store, request)) - before
      this.#forgiven.push({ at: this.#clock.now, amount: (request.costs[0] as number) * windowMs - owedMore })
      return this.#note(request, result)
    }
    return new Proxy(store, {
      get(target, name) {
        if (name === 'decide') return decide
        const member: unknown = Reflect.get(target, name, target)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  }

  /**
   * The most that the client got in a span until now beyond a full bucket, what returned in the span and what was forgiven in it.
   * `isByTime`: a refund counts when it was made.
   */
  excess({ capacity, limit, windowMs, stepMs }: Rate, isByTime = false): number {
    const { now } = this.#clock
    const charges = this.got.map(({ at, charged, cost }) => ({ at, cost: isByTime ? charged : cost }))
    const changes = isByTime ? [...charges, ...this.#refunds] : charges
    return Math.max(
      ...charges.map(({ at: from }) => {
        const units = sumOf(changes, ({ at, cost }) => (at < from ? 0 : cost))
        const forgiven = sumOf(this.#forgiven, ({ at, amount }) => (at < from ? 0 : amount))
        const steps = Math.floor(now / stepMs) - Math.floor(from / stepMs)
        return units - (forgiven + steps * stepMs * limit) / windowMs - capacity
      }),
    )
  }

  #note(request: StoreRequest, result: StoreResult): StoreResult {
    const { op, charge } = request
    const cost = request.costs[0] as number
    const at = this.#clock.now
    if (op === DEBIT || ((op === CONSUME || op === CHARGE) && result.allowed)) {
      const one: Got = { at, charged: cost, cost, ...(op === DEBIT && { isDebt: true }) }
      this.#of.set(result, one)
      this.got.push(one)
    } else if (op === REFUND) {
      const one = this.#of.get(charge as StoreResult) as Got
      one.cost -= cost
      this.#refunds.push({ at, cost: -cost })
    }
    return result
  }

  async #owed(store: Store, request: StoreRequest): Promise<number> {
    const { values, offset } = await store.decide({ ...request, costs: [0] })
    return values[offset + STRIDE - 1] as number
  }
}

function capacityOfVersions(verdicts: readonly Verdict[]): number {
  return Math.max(...verdicts.map(({ limits }) => (limits[0] as LimitReport).capacity))
}

function sumOf<T>(all: readonly T[], amountOf: (one: T) => number): number {
  return all.reduce((sum, one) => sum + amountOf(one), 0)
}

const step = fc.record({
  gap: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1.5, noNaN: true }), fc.constant('retry' as const)),
  version: fc.nat({ max: AMOUNTS.length - 1 }),
  what: fc.constantFrom('consume', 'consume', 'consume', 'settle', 'overspend', 'refund', 'meter'),
  cost: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 5, max: 60 })),
  which: fc.nat(),
  more: fc.oneof(fc.integer({ min: 1, max: 9 }), fc.integer({ min: 10, max: 400 })),
})
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never
const walks = fc.array(step, { minLength: 6, maxLength: 40 })

/** Consumes, settles, meters and refunds. `seen` is called after each step. */
async function spend(
  clock: Clock,
  versions: readonly Limiter[],
  walk: readonly Step[],
  windowMs: number,
  seen: (limiter: Limiter, key: string, last: Verdict | undefined) => Promise<void>,
): Promise<void> {
  const key = freshKey()
  const held: Verdict[] = []
  let waitMs = 0
  for (const { gap, version, what, cost, which, more } of walk) {
    clock.now += gap === 'retry' ? waitMs : Math.floor(gap * windowMs)
    const limiter = versions[version % versions.length] as Limiter
    const isNew = what === 'consume' || held.length === 0
    const [one] = isNew ? [] : held.splice(which % held.length, 1)
    const verdict = one ? undefined : await limiter.consume(key, { cost: { tokens: cost } })
    if (verdict?.allowed) held.push(verdict)
    waitMs = verdict?.retryAfterMs ?? 0
    const charged = one?.units.tokens?.cost ?? 0
    if (what === 'settle') await one?.settle({ tokens: which % (charged + 1) })
    if (what === 'overspend') await one?.settle({ tokens: charged + more })
    if (what === 'refund' && one) await limiter.refund(key, one)
    if (what === 'meter' && one) {
      const meter = one.meter('tokens', { step: cost, onExhausted: which % 2 === 0 ? 'cut' : 'finish' })
      await meter.add(more)
      if (which % 3 > 0) await meter.end()
      else await one.settle({ tokens: which % (2 * more) })
    }
    await seen(limiter, key, verdict)
  }
}

/** Buckets whose clients use more than they were charged. */
export function overspendingContract(under: StoreUnderTest): void {
  describe(`overspending on ${under.name}`, () => {
    const clock = new Clock()
    let store: Store
    beforeAll(async () => {
      store = await under.make(clock.read, { denyCache: false })
    })
    afterAll(() => store.close())

    for (const { title, specs } of BUCKETS) {
      test(`a client of a ${title} gets no more than the bucket holds, what returns, and what was forgiven`, () =>
        always(under, fc.record({ spec: specs, walk: walks }), async ({ spec, walk }) => {
          const capacity = capacityOf(spec)
          if (capacity === 0) return
          const account = new Account(clock)
          const limits = [limitOf<string>(spec, undefined, undefined, unit)]
          const limiter = createLimiter<string>({ store: account.watch(store), limits })
          const { limit, window: windowMs } = spec
          const stepMs = 'style' in spec && spec.style === 'interval' ? windowMs : 1
          clock.now = MIDNIGHT
          await spend(clock, [limiter], walk, windowMs, async (_, key, verdict) => {
            const { remaining } = await limiter.peek(key, { cost: { tokens: 1 } })
            // As much as without the refunded units, and no more.
            expect(remaining).toBeLessThanOrEqual(roomOf(spec)(account.got, clock.now))
            if (verdict?.allowed)
              expect(account.excess({ capacity, limit, windowMs, stepMs })).toBeLessThanOrEqual(1e-6)
          })
        }))
    }

    test.each(Object.entries(CARRIED))(
      'while versions of %s share a count, a client gets no more than by the largest, and what was forgiven',
      (name, limitOfVersion) =>
        always(under, walks, async (walk) => {
          const account = new Account(clock)
          const versions = versionsOn(account.watch(store), (amount) => [limitOfVersion(amount)], AMOUNTS)
          const largest = {
            limit: Math.max(...AMOUNTS),
            capacity: capacityOfVersions(await Promise.all(versions.map((limiter) => limiter.peek(freshKey())))),
            windowMs: WINDOW_MS,
            stepMs: name.endsWith('intervals') ? WINDOW_MS : 1,
          }
          clock.now += 100 * WINDOW_MS
          await spend(clock, versions, walk, WINDOW_MS, async (limiter, key, verdict) => {
            const { retryAfterMs, limits } = await limiter.peek(key, { cost: { tokens: 1 } })
            const [{ capacity, limit }] = limits as [LimitReport]
            // Two fillings, or what is left by a larger limit after two windows.
            expect(retryAfterMs).toBeLessThanOrEqual(Math.max(2, Math.ceil((2 * capacity) / limit)) * WINDOW_MS)
            if (verdict?.allowed) expect(account.excess(largest, true)).toBeLessThanOrEqual(1e-6)
          })
        }),
    )

    const perDay = { unit, refill: 1000, every: '1m', capacity: 60_000 } as const
    const DAY_MS = 86_400_000
    test.each([64_800, 120_000, 180_000])(
      'a client that uses %d tokens for each 60000 charged gets in a day what is sold',
      async (tokens) => {
        const limiter = createLimiter<string>({ store, limits: [tokenBucket(perDay)] })
        const key = freshKey()
        const owed = async () => (await limiter.peek(key, { cost: { tokens: 1 } })).resetAfterMs / 60
        const start = clock.now
        let [used, forgiven] = [0, 0]
        while (clock.now < start + DAY_MS) {
          const verdict = await limiter.consume(key, { cost: { tokens: 60_000 } })
          clock.now += verdict.retryAfterMs as number
          if (!verdict.allowed) continue
          expect(used + 60_000 - forgiven).toBeLessThanOrEqual(60_000 + (clock.now - start) / 60)
          const before = await owed()
          await verdict.settle({ tokens })
          used += tokens
          forgiven += tokens - 60_000 - ((await owed()) - before)
        }
        expect(forgiven > 0).toBe(tokens > 120_000)
      },
    )

    test('a debt is paid at the rate of the limit, and is no more than the capacity', async () => {
      const limiter = createLimiter<string>({ store, limits: [tokenBucket(perDay)] })
      const key = freshKey()
      const one = { cost: { tokens: 1 } }
      const verdict = await limiter.consume(key, one)
      await verdict.settle({ tokens: 1e15 })
      expect(await limiter.peek(key, one)).toMatchObject({ retryAfterMs: 60_001 * 60, resetAfterMs: 120_000 * 60 })
      clock.now += 60_000 * 60
      expect(await limiter.peek(key, one)).toMatchObject({ remaining: 0, retryAfterMs: 60 })
      clock.now += 1000 * 60
      expect(await limiter.peek(key, one)).toMatchObject({ remaining: 1000, resetAfterMs: 59_000 * 60 })
    })

    test('a debt of a bucket close to the largest number is counted as far as numbers are exact', async () => {
      const [limit, windowMs] = [100_000_000, DAY_MS]
      const limiter = createLimiter<string>({ store, limits: [gcra({ unit, limit, window: windowMs })] })
      const key = freshKey()
      const verdict = await limiter.consume(key, { cost: { tokens: limit } })
      for (const cost of [1, limit]) {
        await verdict.settle({ tokens: 3 * limit })
        const retryAfterMs = Math.ceil((Number.MAX_SAFE_INTEGER - (limit - cost) * windowMs) / limit)
        expect(await limiter.peek(key, { cost: { tokens: cost } })).toMatchObject({ retryAfterMs })
      }
    })

    test('a charge from before a settlement that was partly forgiven is not refunded', async () => {
      const limiter = createLimiter<string>({ store, limits: [gcra({ unit, limit: 10, window: WINDOW_MS })] })
      const [key, without] = [freshKey(), freshKey()]
      const held = await limiter.consume(key, { cost: { tokens: 5 } })
      for (const each of [key, without]) {
        const verdict = await limiter.consume(each, { cost: { tokens: 5 } })
        await verdict.settle({ tokens: 100 })
      }
      await limiter.refund(key, held)
      for (const ms of [0, 11_000, 4000, 5000, WINDOW_MS]) {
        clock.now += ms
        const { remaining, resetAfterMs } = await limiter.peek(without, { cost: { tokens: 1 } })
        expect(await limiter.peek(key, { cost: { tokens: 1 } })).toMatchObject({ remaining, resetAfterMs })
      }
    })
  })
}
