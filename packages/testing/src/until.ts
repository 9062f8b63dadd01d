import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

/** Waits until `value` returns the expected value. Fails with the last value after 15 s. */
export async function until<T>(value: () => T | Promise<T>, expected: T): Promise<void> {
  const endMs = performance.now() + 15_000
  for (;;) {
    const seen = await value()
    if (seen === expected) return
    if (performance.now() > endMs) assert.equal(seen, expected, 'after 15 s')
    await sleep(10)
  }
}
