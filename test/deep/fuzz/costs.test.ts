import {
  type CostOptions,
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  leakyBucket,
  memoryStore,
  perMinute,
  slidingLog,
  slidingWindow,
  type Verdict,
} from '@sluice/core'
import { createGuard, type Outcome } from '@sluice/core/http'
import fc from 'fast-check'
import { contextOf } from '../../support/context.js'
import { namesNothing } from './support/costs.js'
import { expectSaid, must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { type Make, number } from './support/hostile.js'
import { expectSane } from './support/verdicts.js'

const clock = { now: 1_000_000 }
const store = memoryStore({ clock: () => clock.now })

const POLICIES: Record<string, readonly Limit<string>[]> = {
  log: [slidingLog({ limit: 7, window: '10s' })],
  window: [fixedWindow({ limit: 7, window: '10s' }), slidingWindow({ limit: 7, window: '10s', segments: 2 })],
  buckets: [gcra({ limit: 7, window: '10s' }), leakyBucket({ leak: 7, every: '10s', queue: true })],
  largest: [gcra({ limit: 2 ** 53 - 1, window: 1 }), fixedWindow({ limit: 2 ** 53 - 1, window: 1 })],
  permits: [concurrency({ limit: 7 }), perMinute(7)],
  reserves: [gcra({ limit: 7, window: '10s', reserve: { 1: 2, 2: 0.1 } })],
  bytes: [gcra({ limit: 7, window: '10s', unit: 'content-bytes' }), perMinute(7)],
}
const limiters = Object.entries(POLICIES).flatMap(([name, limits]) => {
  const denies = limits.some(({ reserve }) => reserve) ? (['none'] as const) : (['none', 'charge'] as const)
  return denies.map((onDeny) => createLimiter({ name: `${name}-${onDeny}`, store, limits, onDeny }))
})
const limiter: fc.Arbitrary<Limiter> = fc.constantFrom(...limiters)

const isUnits = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0

/** The remaining units and reset times of every limit. */
async function left(limiter: Limiter): Promise<string> {
  return JSON.stringify(
    (await limiter.peek('k')).limits.map(({ remaining, resetAfterMs }) => [remaining, resetAfterMs]),
  )
}

const CODES = ['INVALID_COST', 'INVALID_POLICY'] as const

fuzz('costs', 'an invalid cost, bytes or priority is rejected by name, and changes nothing', {
  inputs: fc.record({
    limiter,
    cost: number,
    bytes: number,
    priority: number,
    passedMs: fc.integer({ min: 1, max: 5000 }),
  }),
  async check({ limiter, passedMs, ...makes }) {
    clock.now += passedMs
    const [cost, bytes, priority] = [makes.cost(), makes.bytes(), makes.priority()]
    const options = { cost, bytes, priority } as CostOptions
    for (const method of ['consume', 'peek'] as const) {
      const before = await left(limiter)
      let verdict: Verdict | undefined
      const message = await expectSaid(CODES, async () => {
        verdict = await limiter[method]('k', options)
      })
      if (verdict === undefined) {
        must(/: (cost|bytes|priority): expected /.test(message), 'the name of what is wrong', message)
        must((await left(limiter)) === before, 'no change', message)
        continue
      }
      expectSane(verdict)
      must(cost === undefined || isUnits(cost) || namesNothing(cost), 'a cost of whole units', cost)
      must(priority === undefined || Number.isFinite(priority), 'a priority', priority)
      if (method === 'peek') must((await left(limiter)) === before, 'a peek that changes nothing')
      else await settle(limiter, verdict, makes.bytes)
      // Otherwise permits would stay taken.
      await limiter.release(verdict)
    }
  },
})

async function settle(limiter: Limiter, verdict: Verdict, make: Make): Promise<void> {
  const actual = make() as number
  const before = await left(limiter)
  const message = await expectSaid(['INVALID_COST'], () => verdict.settle(actual))
  const fits = namesNothing(actual) || (isUnits(actual) && (!verdict.allowed || actual <= verdict.cost))
  must((message === '') === fits, 'an error exactly where it is more than was charged', [actual, verdict.cost, message])
  if (message !== '') must((await left(limiter)) === before, 'no change', message)
}

/** The values that the functions of these limiters return. */
const returned: { limit: unknown; window: unknown; cost: unknown } = { limit: 1, window: 1, cost: 1 }
const dynamic = [slidingLog, fixedWindow, slidingWindow, gcra].map((make, i) =>
  createLimiter({
    name: `of-functions-${i}`,
    limits: [make<string>({ limit: () => returned.limit as number, window: () => returned.window as number })],
  }),
)
const plain = createLimiter({ limit: () => returned.limit as number, window: () => returned.window as number })
const guard = createGuard<unknown>({
  key: () => 'k',
  limit: () => returned.limit as number,
  window: () => returned.window as number,
  cost: () => returned.cost as number,
})

const length = fc.oneof(
  number,
  fc.constantFrom<Make[]>(...['1s', '250ms', '1.5s', '100d', '0.0001s', '1e3s', '1s\n'].map((text) => () => text)),
)

fuzz('costs', 'limits, windows and costs that functions return are valid, or errors name them', {
  inputs: fc.record({ limit: number, window: length, cost: number }),
  async check(makes) {
    returned.limit = makes.limit()
    returned.window = makes.window()
    returned.cost = makes.cost()
    for (const limiter of [...dynamic, plain]) {
      let verdict: Verdict | undefined
      const message = await expectSaid(['INVALID_POLICY'], async () => {
        verdict = await limiter.consume('k')
      })
      if (!verdict)
        must(/^policy "[\w-]+": (limit|window|segments): /.test(message), 'the name of what is wrong', message)
      else expectReturned(verdict)
    }
    let outcome: Outcome | undefined
    const message = await expectSaid(CODES, async () => {
      outcome = await guard(contextOf())
    })
    if (!outcome) must(/: (limit|window|cost): /.test(message), 'the name of what is wrong', message)
    else if (!outcome.verdict) {
      must(outcome.reply?.status === 400, 'a client that is told that its request is invalid', outcome)
      must(typeof returned.cost === 'number' && !isUnits(returned.cost), 'a number that is no cost', returned.cost)
    } else {
      expectReturned(outcome.verdict)
      // The value of a promise is checked, too.
      const cost = await returned.cost
      must(isUnits(cost) || namesNothing(cost), 'a cost of whole units', returned.cost)
    }
  },
})

function expectReturned(verdict: Verdict): void {
  expectSane(verdict)
  must(isUnits(returned.limit), 'a limit of whole units', returned.limit)
  must(['number', 'string'].includes(typeof returned.window), 'a duration', returned.window)
  must((verdict.limits[0]?.windowMs ?? 0) >= 1, 'a window', returned.window)
}
