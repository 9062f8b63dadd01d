// Prints `N passed, N failed`, added up over the test runs of the last `npm test`, and exits with 1 if anything failed:
// node scripts/test-report.js <exit code of npm test>
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

/**
 * The part of a vitest JSON report that counts.
 *
 * @typedef {{ numPassedTests: number, numFailedTests: number,
 *   testResults: { status: string, assertionResults: { status: string }[] }[] }} Report
 */

/**
 * @param {Report[]} reports
 * @param {number} exitCode of the whole check; a failure without a report counts as one
 * @returns {{ passed: number, failed: number }}
 */
export function total(reports, exitCode) {
  let passed = 0
  let failed = 0
  for (const report of reports) {
    passed += report.numPassedTests
    failed += report.numFailedTests
    // A file that fails outside its tests, by not loading for instance, has no failed test to show for it.
    failed += report.testResults.filter(
      ({ status, assertionResults }) =>
        status === 'failed' && assertionResults.every((assertion) => assertion.status !== 'failed'),
    ).length
  }
  const unexplained = failed === 0 && (exitCode !== 0 || passed === 0)
  return { passed, failed: unexplained ? 1 : failed }
}

/** @returns {Report[]} */
function readReports() {
  const folder = join(root, '.tmp/reports')
  if (!existsSync(folder)) return []
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'))
  return files.map((file) => JSON.parse(readFileSync(join(folder, file), 'utf8')))
}

await whenStarted(import.meta.url, () => {
  const { passed, failed } = total(readReports(), Number(process.argv[2] ?? 0))
  console.log(`${passed} passed, ${failed} failed`)
  if (failed > 0) process.exitCode = 1
})
