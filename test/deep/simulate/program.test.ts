// Deep: replays logs against live servers.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readFileSync, rmSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { generateLog } from '../../../bench/lib/log-lines.js'
import { filesOf } from '../../simulate/support.js'
import { ensureBuilt } from '../../support/built-core.js'

const BIN = fileURLToPath(new URL('../../../packages/cli/bin/sluice.cjs', import.meta.url))
const LINES = 60_000

beforeAll(() => ensureBuilt('cli'))

/** A log above the size from which a thread of its own reads it, and a document. */
function given() {
  const log = Buffer.concat([...generateLog({ seed: 8, lines: LINES, clients: 900 })]).toString('latin1')
  const document = JSON.stringify({ version: 1, policies: { api: { limits: [{ limit: 100, window: '1m' }] } } })
  return filesOf({ 'access.log': log, 'policies.json': document, 'report.html': '' })
}

test('a log that comes by a pipe or as standard input is played as its file is', { timeout: 120_000 }, () => {
  const files = given()
  const command = `"${process.execPath}" "${BIN}" simulate`
  const document = `--document "${files['policies.json']}"`
  const played = (line: string) => {
    const { status, stdout, stderr } = spawnSync('bash', ['-c', line], { encoding: 'utf8' })
    expect([status, stderr], line).toEqual([0, ''])
    return stdout.split('\n').slice(1).join('\n')
  }
  const log = `"${files['access.log']}"`
  const report = played(`${command} ${log} ${document}`)
  expect(report).toContain(`${LINES.toLocaleString('en')} requests of`)
  for (const line of [
    `cat ${log} | ${command} - ${document}`,
    `${command} - ${document} < ${log}`,
    `gzip -c ${log} | ${command} - ${document}`,
    `${command} <(cat ${log}) ${document}`,
  ]) {
    expect(played(line), line).toBe(report)
  }
})

test('Ctrl-C ends the reading of a pipe that is silent, with the report and the page of what came', {
  timeout: 120_000,
}, async () => {
  const files = given()
  rmSync(files['report.html'])
  const args = [BIN, 'simulate', '-', '--document', files['policies.json'], '--html', files['report.html']]
  const program = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  onTestFinished(() => void program.kill('SIGKILL'))
  let stdout = ''
  program.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text
  })
  await new Promise((resolve) => program.stdin.write(readFileSync(files['access.log']), resolve))
  // A signal that comes before the program listens to it would end it without a report.
  setTimeout(() => program.kill('SIGINT'), 5000)
  expect(await once(program, 'exit')).toEqual([0, null])
  expect(stdout).toMatch(/^standard input: [\d,]+ lines of combined, .*; not read to the end\n/)
  expect(readFileSync(files['report.html'], 'utf8')).toContain('Reading ended before the logs did')
  expect(statSync(files['report.html']).mode & 0o777).toBe(0o600)
})

test('people see the progress on their terminal, which leaves no trace', { timeout: 120_000 }, () => {
  const files = given()
  // A file that is named twice is an error.
  const copies = Array.from({ length: 6 }, (_, n) => `${files['access.log']}.${n}`)
  for (const copy of copies) copyFileSync(files['access.log'], copy)
  const log = copies.map((copy) => `"${copy}"`).join(' ')
  // Of util-linux: gives the command a terminal.
  const line = `"${process.execPath}" "${BIN}" simulate ${log} --lenient --document "${files['policies.json']}"`
  const { stdout } = spawnSync('script', ['-qec', line, '/dev/null'], { encoding: 'utf8' })
  const steps = stdout.split('\r\u001b[K')
  expect(steps.filter((step) => /^[\d.]+ MiB of [\d.]+ MiB, \d+ %$/.test(step)).length).toBeGreaterThan(0)
  expect(steps.at(-1)).toContain('360,000 requests of')
})
