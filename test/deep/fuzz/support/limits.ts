import {
  concurrency,
  fixedWindow,
  gcra,
  type Limit,
  leakyBucket,
  SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@sluice/core'
import fc from 'fast-check'

const units = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 0, max: 9 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: 1_000_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(2 ** 40, 2 ** 52, 2 ** 53 - 1) },
)
const window = fc.oneof(
  fc.integer({ min: 1, max: 3000 }),
  fc.constantFrom(1, 999, 1000, 1001, 1500, 60_000, 86_400_000, 2 ** 31, 100 * 365 * 86_400_000),
)
const name = fc.option(fc.stringMatching(/^[A-Za-z0-9_-]{1,64}$/), { nil: undefined, freq: 3 })
const unit = fc.constantFrom('requests' as const, 'content-bytes' as const, 'response-bytes' as const)
const some = fc.integer({ min: 1, max: 20 })

type Maker = (options: never) => Limit

/** Every constructor with every option; options whose numbers do not fit each other are undefined. */
const made = <T>(make: Maker, options: fc.Arbitrary<T>): fc.Arbitrary<Limit | undefined> =>
  options.map((given) => {
    // An undefined option counts as absent.
    const present = Object.fromEntries(Object.entries(given as object).filter(([, value]) => value !== undefined))
    try {
      return make(present as never)
    } catch (error) {
      if (error instanceof SluiceError) return undefined
      throw error
    }
  })

const common = { name, limit: units, window }

/** Any valid limit. */
const limit: fc.Arbitrary<Limit> = fc
  .oneof(
    made(slidingLog, fc.record(common)),
    made(fixedWindow, fc.record({ ...common, unit, anchor: fc.constantFrom('clock', 'first-request') })),
    made(
      slidingWindow,
      fc.record({
        ...common,
        unit,
        segments: fc.option(some, { nil: undefined }),
        edge: fc.constantFrom('weighted', 'strict', 'dropped'),
        rounding: fc.constantFrom('up', 'down'),
      }),
    ),
    made(gcra, fc.record({ ...common, unit, burst: fc.option(some, { nil: undefined }) })),
    made(
      tokenBucket,
      fc.record({
        ...common,
        unit,
        capacity: fc.option(some, { nil: undefined }),
        style: fc.constantFrom('greedy', 'interval'),
      }),
    ),
    made(
      leakyBucket,
      fc.record({ ...common, unit, capacity: fc.option(some, { nil: undefined }), queue: fc.boolean() }),
    ),
    made(concurrency, fc.record({ name, limit: units, ttl: window })),
  )
  .filter((limit) => limit !== undefined)

/** One to five limits whose names differ by more than case. */
export const limits: fc.Arbitrary<readonly Limit[]> = fc
  .array(limit, { minLength: 1, maxLength: 5 })
  .map((limits) => limits.filter(({ name }, i) => !name || limits.findIndex((other) => isLike(other.name, name)) === i))

const isLike = (a: string | undefined, b: string) => a?.toLowerCase() === b.toLowerCase()
