// Prints what failed and `N passed, N failed`, added up over runs of tests, and exits with 1 if anything failed. Each is named by
// its report, with the exit code of its whole command: node scripts/test-report.js change=0 release=1
import { existsSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

/**
 * The part of a vitest JSON report that counts.
 *
 * @typedef {{ numPassedTests: number, numFailedTests: number,
 *   testResults: FileResult[] }} Report
 * @typedef {{ name?: string, status: string, message?: string,
 *   assertionResults: { status: string, fullName?: string, failureMessages?: string[] }[] }} FileResult
 */

const LINES_OF_A_MESSAGE = 12

/**
 * What failed, so that the end of a long log says it: the file, the test and the beginning of its message.
 *
 * @param {Report[]} reports
 * @returns {string[]}
 */
export function failures(reports) {
  return reports.flatMap(({ testResults }) =>
    testResults
      .filter(({ status }) => status === 'failed')
      .flatMap(({ name = '', message = '', assertionResults }) => {
        const file = relative(root, name)
        const failed = assertionResults.filter(({ status }) => status === 'failed')
        if (failed.length === 0) return [`FAILED ${file}\n${beginning(message)}`]
        return failed.map(
          ({ fullName, failureMessages = [] }) =>
            `FAILED ${file} > ${fullName}\n${beginning(failureMessages.join('\n'))}`,
        )
      }),
  )
}

/** @param {string} message */
function beginning(message) {
  const lines = message.split('\n').filter((line) => !line.includes('node_modules'))
  return lines.slice(0, LINES_OF_A_MESSAGE).join('\n')
}

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

/** @param {string} name @returns {Report[]} */
function readReports(name) {
  const file = join(root, `.tmp/reports/${name}.json`)
  return existsSync(file) ? [JSON.parse(readFileSync(file, 'utf8'))] : []
}

await whenStarted(import.meta.url, () => {
  const totals = process.argv.slice(2).map((word) => {
    const [name = '', exitCode] = word.split('=')
    const reports = readReports(name)
    for (const failure of failures(reports)) console.log(`${failure}\n`)
    return total(reports, Number(exitCode))
  })
  const sum = (/** @type {'passed' | 'failed'} */ part) => totals.reduce((all, each) => all + each[part], 0)
  console.log(`${sum('passed')} passed, ${sum('failed')} failed`)
  if (sum('failed') > 0 || totals.length === 0) process.exitCode = 1
})
