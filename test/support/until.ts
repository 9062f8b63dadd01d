import { setTimeout as sleep } from 'node:timers/promises'

export interface UntilOptions {
  /** Whole milliseconds. @default 30_000 */
  readonly withinMs?: number
  /** Whole milliseconds between two attempts. @default 10 */
  readonly everyMs?: number
  /** Errors of this class end the wait, as it would be in vain. */
  readonly giveUpOn?: new (
    message: string,
  ) => Error
}

type Falsy = false | undefined | null | 0 | ''

/**
 * Waits for a condition in another process: calls `look` repeatedly until it returns something truthy. Errors of `look`
 * mean "not yet"; the last one is the cause of the timeout.
 */
export async function until<T>(
  what: string,
  look: () => T | Falsy | Promise<T | Falsy>,
  options: UntilOptions = {},
): Promise<T> {
  const { withinMs = 30_000, everyMs = 10, giveUpOn } = options
  const deadline = performance.now() + withinMs
  let cause: unknown
  do {
    try {
      const seen = await look()
      if (seen) return seen as T
    } catch (error) {
      if (giveUpOn && error instanceof giveUpOn) throw error
      cause = error
    }
    await sleep(everyMs)
  } while (performance.now() < deadline)
  throw new Error(`waited ${withinMs} ms in vain: ${what}`, { cause })
}
