import fc from 'fast-check'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { LeaseClock } from '../../../packages/core/src/features/leases/lease-clock.js'

/** The machine's clocks, in ms. */
let monotonicMs: number
let wallMs: number
beforeEach(() => {
  monotonicMs = 5000
  wallMs = 1_800_000_000_000
  vi.stubGlobal('performance', { now: () => monotonicMs })
  vi.spyOn(Date, 'now').mockImplementation(() => Math.floor(wallMs))
})
afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

/** Less than any machine takes to fall asleep and wake, by the monotonic clock, which stops in between. */
const AWAKE_MS = 0.011

function run(ms: number): void {
  monotonicMs += ms
  wallMs += ms
}

function sleep(ms: number): void {
  run(AWAKE_MS)
  wallMs += ms
}

function setWall(byMs: number): void {
  wallMs += byMs
}

test('a lease ages by the time that the machine slept, from the first decision on', () => {
  const clock = new LeaseClock(undefined)
  const began = clock.now()
  for (let n = 0; n < 1000; n++) {
    run(0.0002)
    expect(clock.since(began)).toBeLessThan(1.3)
  }
  sleep(3_600_000)
  expect(clock.since(began)).toBeGreaterThanOrEqual(3_600_000 - 1)
})

test('a wall clock set back makes no lease younger, and one set forward makes it older', () => {
  const clock = new LeaseClock(undefined)
  const began = clock.now()
  run(700)
  setWall(-600_000)
  expect(clock.since(began)).toBeGreaterThanOrEqual(700)
  run(300)
  expect(clock.since(began)).toBeGreaterThanOrEqual(1000)
  setWall(700_000)
  run(AWAKE_MS)
  expect(clock.since(began)).toBeGreaterThanOrEqual(100_000)
})

test('a wall clock that was just set back does not hide a later sleep', () => {
  const clock = new LeaseClock(undefined)
  clock.since(clock.now())
  setWall(-600_000)
  const began = clock.now()
  sleep(3_600_000)
  expect(clock.since(began)).toBeGreaterThanOrEqual(3_600_000 - 1)
})

test('the wall clock is read once for many decisions, and each time if they are rare', () => {
  const clock = new LeaseClock(undefined)
  const began = clock.now()
  vi.mocked(Date.now).mockClear()
  for (let n = 0; n < 100; n++) {
    run(0.0002)
    clock.since(began)
  }
  expect(vi.mocked(Date.now).mock.calls.length).toBeLessThanOrEqual(3)
  vi.mocked(Date.now).mockClear()
  for (let n = 0; n < 100; n++) {
    run(0.1)
    clock.since(began)
  }
  expect(Date.now).toHaveBeenCalledTimes(100)
})

test('for any clock movements, the clock that moved further counts, and is read within 10 µs', () => {
  const move = fc.oneof(
    fc.double({ min: 0, max: 2, noNaN: true }).map((ms) => () => run(ms)),
    fc.double({ min: 0, max: 0.02, noNaN: true }).map((ms) => () => run(ms)),
    fc.double({ min: 0, max: 100_000, noNaN: true }).map((ms) => () => sleep(ms)),
    fc.double({ min: -100_000, max: 100_000, noNaN: true }).map((ms) => () => setWall(ms)),
  )
  fc.assert(
    fc.property(fc.array(fc.tuple(move, fc.boolean()), { maxLength: 60 }), (moves) => {
      const clock = new LeaseClock(undefined)
      const began = clock.now()
      const [beganMs, beganWallMs] = [monotonicMs, Date.now()]
      const further = () => Math.max(monotonicMs - beganMs, Date.now() - beganWallMs)
      for (const [move, looks] of moves) {
        move()
        if (looks) expect(clock.since(began)).toBeGreaterThanOrEqual(monotonicMs - beganMs - 0.001)
      }
      run(AWAKE_MS)
      expect(clock.since(began)).toBeCloseTo(further(), 2)
    }),
  )
})
