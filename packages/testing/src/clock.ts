/** A clock that advances only on demand: `memoryStore({ clock })`, `redisStore(client, { clock })`. */
export interface TestClock {
  /** The time, in whole ms. */
  (): number
  /** The same. */
  readonly now: number
  /**
   * Advances the clock; a negative number of ms sets it back.
   *
   * @param by whole ms, or a duration such as `'1m'`
   * @returns the time then
   * @throws TypeError for any other value
   */
  advance(by: number | `${number}${keyof typeof UNIT_MS}`): number
  /**
   * Sets the clock.
   *
   * @param toMs whole ms
   * @throws TypeError for any other value
   */
  set(toMs: number): void
}

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const

/** 2024-10-04, 0:00:00 UTC: windows by the clock start there. */
export const MIDNIGHT_MS = 20_000 * UNIT_MS.d

/**
 * A clock for tests. Windows end only when you advance it.
 *
 * @param startMs its initial time, in whole ms. @default midnight of some day, where windows by the clock start
 * @example
 * const clock = testClock()
 * const store = memoryStore({ clock })
 * clock.advance('1m')
 */
export function testClock(startMs: number = MIDNIGHT_MS): TestClock {
  let now = whole(startMs)
  const clock = Object.assign(() => now, {
    advance(by: number | string): number {
      now = whole(now + (typeof by === 'string' ? durationOf(by) : by))
      return now
    },
    set(toMs: number): void {
      now = whole(toMs)
    },
  })
  return Object.defineProperty(clock, 'now', { get: () => now, enumerable: true }) as TestClock
}

function durationOf(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? []
  return Number(amount) * (UNIT_MS[unit as keyof typeof UNIT_MS] ?? Number.NaN)
}

function whole(ms: number): number {
  if (!Number.isSafeInteger(ms)) throw new TypeError(`testClock: expected whole milliseconds or a duration, got ${ms}`)
  return ms
}
