import type { Store } from '@sluice/core'
import type { TestClock } from '../clock.js'
import type { AdapterAppSpec, RunningApp } from './app.js'

/** The tools of a test of an adapter. */
export interface AdapterTest {
  /** Makes an app and starts it. It is closed after the test. */
  readonly start: (spec: AdapterAppSpec) => Promise<RunningApp>
  /** A memory store on `clock`. */
  readonly store: Store
  /** The clock starts at a midnight in UTC. */
  readonly clock: TestClock
}

/** Registers a test. */
export type RegisterTest = (title: string, body: (test: AdapterTest) => Promise<void>) => void
