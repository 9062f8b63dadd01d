import { memoryStore } from '@sluice/core'
import { testClock } from '../clock.js'
import type { TestRunner } from '../runner.js'
import type { RegisterTest } from './adapter-test.js'
import { type AdapterAppFactory, type AdapterAppSpec, type RunningApp, startApp } from './app.js'
import { clientTests } from './clients.js'
import { faultTests } from './faults.js'
import { permitTests } from './permits.js'
import { quotaTests } from './quotas.js'
import { waitingTests } from './waiting.js'

/** The adapter under test, and the test runner. */
export interface AdapterContractOptions extends TestRunner {
  /** The name of the adapter in tests. */
  readonly name: string
  /** Builds an app with the framework and its adapter; called for each test, which closes its server at its end. */
  readonly make: AdapterAppFactory
  /**
   * Whether apps can trust proxies.
   *
   * With `false`, for a framework without such a setting, no test uses `trustProxy`.
   * @default true
   */
  readonly proxies?: boolean
}

const GROUPS: readonly (readonly [what: string, tests: (on: RegisterTest, proxies: boolean) => void])[] = [
  ['quotas and refusals', quotaTests],
  ['what the application gets wrong', faultTests],
  ['clients', clientTests],
  ['waiting requests', waitingTests],
  ['permits', permitTests],
]

/**
 * Registers the tests that every adapter has to pass, over real connections. They cover exact headers and bodies, several
 * limiters on a route, errors, trusted proxies, clients that leave, and permits.
 *
 * @example adapterContract({ name: 'my framework', make: async (spec) => myApp(spec), describe, test })
 */
export function adapterContract({ name, make, proxies = true, describe, test }: AdapterContractOptions): void {
  for (const [what, tests] of GROUPS) {
    describe(`${what} in ${name}`, () => {
      const on: RegisterTest = (title, body) => {
        test(title, async () => {
          const running: RunningApp[] = []
          const clock = testClock()
          const start = async (spec: AdapterAppSpec) => {
            const app = await startApp(make, spec)
            running.push(app)
            return app
          }
          try {
            await body({ start, clock, store: memoryStore({ clock }) })
          } finally {
            for (const app of running) await app.close()
          }
        })
      }
      tests(on, proxies)
    })
  }
}
