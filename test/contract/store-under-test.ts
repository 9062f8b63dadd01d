import type { ManagedStore, RedisStoreOptions } from '@sluice/core'

/** The parameter of every suite in this directory: one line runs it on another store. */
export interface StoreUnderTest {
  readonly name: string
  /** A store that reads this clock, without state of earlier tests under the keys of a new one. */
  make(
    clock: () => number,
    options?: Pick<RedisStoreOptions, 'denyCache' | 'deny' | 'offenders'>,
  ): Promise<ManagedStore> | ManagedStore
  /** Stops the servers behind the stores; the test file calls it once, after all its suites. */
  close(): Promise<void>
  /** Share of the random runs to spend on this store. @default 1 */
  readonly effort?: number
}

/** A multiple of every window in the tests: 20,000 days, so that clock-anchored windows start at 0:00:00. */
export const MIDNIGHT = 20_000 * 86_400_000

/** A clock that stands still until it is set. */
export class Clock {
  now = MIDNIGHT
  readonly read = (): number => this.now
}

let keys = 0
/** A key that no other test has used. */
export function freshKey(): string {
  return `key-${process.pid}-${keys++}`
}
