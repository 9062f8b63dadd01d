import { memoryStore, redisStore, type Store, slidingLog, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { carried } from '../../contract/carried.js'
import { createLimiter } from '../../contract/create-limiter.js'
import { Clock, freshKey } from '../../contract/store-under-test.js'
import { fieldsOf } from '../../contract/traces.js'
import { byEffort } from '../../support/effort.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'

const RUNS = Number(process.env.SLUICE_RUNS ?? byEffort({ usual: 20, full: 3000 }))
/** The windows of the logs that share a state. Limits of one window may swap their order by amount. */
const WINDOWS = [[1000], [1000, 5000], [1000, 1000], [1000, 1000, 3000]]
/** The most units of a stream. */
const METERED = 9
const SIZES = [1, 2, 5, 10, 30]

const { client } = await redisForTests()

const version = fc.record({
  sizes: fc.array(fc.constantFrom(...SIZES), { minLength: 3, maxLength: 3 }),
  onDeny: fc.constantFrom('none' as const, 'none' as const, 'charge' as const),
})
type Version = typeof version extends fc.Arbitrary<infer Value> ? Value : never

const step = fc.record({
  gapMs: fc.constantFrom(0, 0, 0, 1, 50, 300, 999, 1000, 2500),
  /** A new version from here on; without it, the last one stays. Those before it are in force elsewhere. */
  version: fc.option(version, { freq: 3 }),
  what: fc.constantFrom('consume', 'consume', 'consume', 'crowd', 'settle', 'settle', 'refund', 'meter'),
  cost: fc.oneof(fc.integer({ min: 0, max: 4 }), fc.constantFrom(10, 29, 30)),
  actual: fc.oneof(fc.nat({ max: 8 }), fc.constantFrom(30, 31, 1000)),
  which: fc.nat(),
})

/** Every unit with its instant. A charge that does not fit replaces the oldest, so that no more count than its largest limit or before. */
class Units {
  #instants: number[] = []

  within(windowMs: number, now: number): number {
    return this.#instants.filter((at) => at > now - windowMs).length
  }

  charge(units: number, most: number, longestMs: number, now: number): void {
    const bound = Math.max(most, this.within(longestMs, now))
    const all = [...this.#instants.filter((at) => at > now - longestMs), ...Array(Math.min(units, most)).fill(now)]
    this.#instants = all.slice(-bound || all.length)
  }

  refund(units: number, at: number): void {
    for (let n = 0; n < units && this.#instants.includes(at); n++) this.#instants.splice(this.#instants.indexOf(at), 1)
  }
}

interface Admitted {
  readonly verdicts: readonly Verdict[]
  readonly version: Version
  readonly at: number
  readonly cost: number
  /** The units that it holds: no more than were charged. */
  held: number
  isSettled: boolean
}

for (const windows of WINDOWS) {
  test(`whatever verdicts of earlier limits are charged, logs of ${windows.join(' and ')} ms admit no more than their limits`, async () => {
    const clock = new Clock()
    const stores: Store[] = [
      memoryStore({ clock: clock.read }),
      insist(redisStore(client, { clock: clock.read, timeout: 5000, denyCache: false })),
    ]
    const name = `logs-${windows.join('-')}`
    const limitersOf = ({ sizes, onDeny }: Version) => {
      const limits = windows.map((window, i) => slidingLog({ name: `l${i}`, window, limit: sizes[i] as number }))
      return stores.map((store) => createLimiter({ name, store, limits: [...carried(limits)], onDeny }))
    }
    const longestMs = Math.max(...windows)
    await fc.assert(
      fc.asyncProperty(version, fc.array(step, { minLength: 5, maxLength: 60 }), async (first, steps) => {
        clock.now += 3_600_000
        const key = freshKey()
        const units = new Units()
        const admitted: Admitted[] = []
        let current = first
        let limiters = limitersOf(current)
        /** Whether the oracle knows every charge: it does not follow the steps of a meter. */
        let isExact = true

        const limitsOf = ({ sizes }: Version) => windows.map((windowMs, i) => ({ windowMs, limit: sizes[i] as number }))
        const largest = (of: Version) => Math.max(...limitsOf(of).map(({ limit }) => limit))
        const heldIn = (windowMs: number) =>
          admitted.reduce((sum, { at, held }) => sum + (at > clock.now - windowMs ? held : 0), 0)
        const hasRoom = (cost: number) =>
          limitsOf(current).every(
            ({ limit, windowMs }) => cost <= limit && (cost === 0 || units.within(windowMs, clock.now) + cost <= limit),
          )
        const agreed = (verdicts: readonly Verdict[]) => {
          expect(fieldsOf(verdicts[1] as Verdict)).toEqual(fieldsOf(verdicts[0] as Verdict))
          return verdicts[0] as Verdict
        }
        const left = async () => {
          const now = agreed(await Promise.all(limiters.map((limiter) => limiter.peek(key))))
          return now.limits.map(({ remaining }) => remaining)
        }

        for (const { gapMs, version: next, what, cost, actual, which } of steps) {
          clock.now += gapMs
          if (next) {
            current = next
            limiters = limitersOf(current)
          }
          const before = await left()
          const open = admitted.filter(({ isSettled }) => !isSettled)
          const one = open[which % open.length]
          let returned = 0
          if (what === 'consume' || what === 'crowd' || !one) {
            const together = what === 'crowd' ? 3 : 1
            const asked = limiters.map((limiter) =>
              Promise.all(Array.from({ length: together }, () => limiter.consume(key, { cost }))),
            )
            const [inMemory = [], inRedis = []] = await Promise.all(asked)
            for (const [n, verdict] of inMemory.entries()) {
              agreed([verdict, inRedis[n] as Verdict])
              if (isExact) expect(verdict.allowed).toBe(hasRoom(cost))
              const isPossible = limitsOf(current).every(({ limit }) => cost <= limit)
              if (verdict.allowed || (current.onDeny === 'charge' && isPossible))
                units.charge(cost, largest(current), longestMs, clock.now)
              if (!verdict.allowed || cost === 0) continue
              const verdicts = [verdict, inRedis[n] as Verdict]
              admitted.push({ verdicts, version: current, at: clock.now, cost, held: cost, isSettled: false })
            }
          } else {
            one.isSettled = true
            if (what === 'meter') {
              isExact = false
              for (const verdict of one.verdicts) {
                const meter = verdict.meter('requests', { step: 1, onExhausted: 'finish' })
                for (let n = 0; n < Math.min(actual, METERED); n++) await meter.add(1)
                await meter.end()
              }
              one.held = Math.min(one.cost, actual, METERED)
            } else if (what === 'refund') {
              await Promise.all(limiters.map((limiter, i) => limiter.refund(key, one.verdicts[i] as Verdict)))
              one.held = 0
            } else {
              await Promise.all(one.verdicts.map((verdict) => verdict.settle({ requests: actual })))
              one.held = Math.min(one.cost, actual)
            }
            const more = what === 'settle' ? actual - one.cost : 0
            if (more > 0) units.charge(more, largest(one.version), longestMs, clock.now)
            else units.refund(one.cost - one.held, one.at)
            returned = one.cost - one.held
          }
          const after = await left()
          for (const [i, { limit, windowMs }] of limitsOf(current).entries()) {
            expect(after[i]).toBeLessThanOrEqual((before[i] as number) + returned)
            expect(after[i]).toBeLessThanOrEqual(Math.max(0, limit - heldIn(windowMs)))
            if (isExact) expect(after[i]).toBe(Math.max(0, limit - units.within(windowMs, clock.now)))
          }
        }
      }),
      { numRuns: RUNS },
    )
    for (const store of stores) await store.close()
  })
}
