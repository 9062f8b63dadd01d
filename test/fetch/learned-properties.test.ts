import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  ANSWERED,
  age,
  emptyState,
  look,
  type QuotaTaken,
  take,
  told,
} from '../../packages/fetch/src/learned/kernel.js'

interface Situation {
  readonly processes: number
  readonly limit: number
  readonly windowMs: number
  readonly isEven: boolean
  /** Resets in whole seconds. */
  readonly inSeconds: boolean
  /** The limit is another one from then on. */
  readonly changes: { readonly at: number; readonly to: number } | undefined
  /** Of 100 requests as many reach the service, and their response never comes. */
  readonly lostOf100: number
  readonly latencies: readonly number[]
}

interface Request {
  readonly at: number
  readonly isFirst: boolean
  isRefused: boolean
}

interface Course {
  readonly sent: readonly Readonly<Request>[]
  /** When a response first told the limit after its change. */
  readonly toldAt: number
  /** The units of each whole window that were spent, and those that there were. */
  readonly windows: readonly { readonly used: number; readonly limit: number }[]
}

const RUNS = Number(process.env.SLUICE_RUNS ?? 200)
const START = 1_760_000_000_000
const WINDOWS = 5

/** Processes that send as much as they may to a service with a fixed window, in simulated time. */
function courseOf(situation: Situation): Course {
  const { processes, windowMs, isEven, inSeconds, changes, lostOf100, latencies } = situation
  const state = emptyState()
  const events: { at: number; run: (at: number) => void }[] = []
  const later = (at: number, run: (at: number) => void) => events.push({ at, run })
  const sent: Request[] = []
  const windows: { used: number; limit: number }[] = []
  let [number, window, used, toldAt] = [0, 0, 0, Number.POSITIVE_INFINITY]
  const end = START + WINDOWS * windowMs
  const limitAt = (at: number) => (changes && at >= START + changes.at ? changes.to : situation.limit)

  /** The service counts a request that arrives, and responds. */
  function arrive(at: number, request: Request, taken: QuotaTaken, backMs: number): void {
    const present = Math.floor((at - START) / windowMs)
    if (present > window) {
      windows.push({ used, limit: limitAt(START + present * windowMs - 1) })
      window = present
      used = 0
    }
    const limit = limitAt(at)
    if (used < limit) used++
    else request.isRefused = true
    const resetMs = START + (present + 1) * windowMs - at
    const resetAfterMs = inSeconds ? Math.ceil(resetMs / 1000) * 1000 : resetMs
    const limits = [{ name: 'a', limit, remaining: Math.max(0, limit - used), resetAfterMs, isBucket: false }]
    // What nobody has been told, nobody can know: the first response comes.
    const isLost = !request.isFirst && number % 100 < lostOf100
    later(at + backMs, (now) => {
      if (isLost) return
      if (changes && limit === changes.to) toldAt = Math.min(toldAt, now)
      age(state, now)
      told(state, now, taken, ANSWERED, limits)
    })
  }

  function ask(at: number): void {
    if (at >= end) return
    age(state, at)
    const { waitMs, isFirst, intervalUs } = look(state, at, isEven)
    if (waitMs > 0) {
      later(at + Math.max(1, Math.min(waitMs, 50)), ask)
      return
    }
    const taken = take(state, at, isFirst)
    const request = { at, isRefused: false, isFirst }
    sent.push(request)
    number++
    const latency = (n: number) => latencies[(number * 2 + n) % latencies.length] as number
    later(at + latency(0), (now) => arrive(now, request, taken, latency(1)))
    later(at + Math.max(1, Math.ceil(intervalUs / 1000)), ask)
  }

  for (let process = 0; process < processes; process++) later(START + process, ask)
  while (events.length > 0) {
    events.sort((one, other) => other.at - one.at)
    const event = events.pop() as (typeof events)[number]
    event.run(event.at)
  }
  return { sent, toldAt, windows }
}

const situations = {
  processes: fc.integer({ min: 1, max: 4 }),
  limit: fc.integer({ min: 1, max: 60 }),
  windowMs: fc.integer({ min: 2, max: 12 }).map((seconds) => seconds * 1000),
  isEven: fc.boolean(),
  inSeconds: fc.boolean(),
  lostOf100: fc.integer({ min: 0, max: 10 }),
  latencies: fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 3, maxLength: 7 }),
}
const refusedIn = ({ sent }: Course) => sent.filter(({ isRefused }) => isRefused)

test('no request is refused while a limit stays as it was told, or grows, whatever the order of responses', () => {
  const grows = fc.option(fc.record({ at: fc.nat(20_000), more: fc.nat(40) }), { nil: undefined })
  fc.assert(
    fc.property(fc.record({ ...situations, grows }), ({ grows, ...rest }) => {
      const changes = grows && { at: grows.at, to: rest.limit + grows.more }
      expect(refusedIn(courseOf({ ...rest, changes }))).toEqual([])
    }),
    { numRuns: RUNS },
  )
})

test('where a limit falls, only requests are refused that were sent before a response told it', () => {
  const falls = fc.record({ at: fc.nat(20_000), to: fc.integer({ min: 1, max: 59 }) })
  fc.assert(
    fc.property(fc.record({ ...situations, falls }), ({ falls, ...rest }) => {
      const course = courseOf({ ...rest, changes: { at: falls.at, to: Math.min(falls.to, rest.limit) } })
      expect(refusedIn(course).filter(({ at }) => at > course.toldAt)).toEqual([])
    }),
    { numRuns: RUNS },
  )
})

/** In which the round trip of the first request is short. */
const longWindows = { windowMs: fc.constantFrom(6000, 9000, 12_000), lostOf100: fc.constant(0) }

test('where the limit stays, nearly all of it is used', () => {
  fc.assert(
    fc.property(fc.record({ ...situations, ...longWindows }), (situation) => {
      // An even pace lasts until the reset, which whole seconds tell up to a second too late.
      const inSeconds = situation.inSeconds && !situation.isEven
      const { windows } = courseOf({ ...situation, inSeconds, changes: undefined })
      for (const { used, limit } of windows.slice(1)) expect(used).toBeGreaterThanOrEqual(Math.floor(limit * 0.95) - 1)
    }),
    { numRuns: RUNS },
  )
})
