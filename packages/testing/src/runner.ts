/**
 * The functions that a contract needs of a test runner. Those of Vitest, Jest and `node:test` will do. Failures are thrown as
 * `AssertionError` of `node:assert`.
 */
export interface TestRunner {
  readonly describe: (name: string, body: () => void) => unknown
  readonly test: (name: string, body: () => Promise<void>) => unknown
}
