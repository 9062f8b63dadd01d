import { linkSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { COMMANDS } from '../../packages/cli/src/commands/index.js'
import { pageOf } from '../../packages/simulate/src/report/html/page.js'
import { sluice } from '../cli/support.js'
import { byEffort } from '../support/effort.js'
import { sampleReport } from './sample-report.js'
import { line, policyOf } from './support.js'

const LOG = [0, 1, 2].map((second) => line(second, '192.0.2.7')).join('')
const EARLIER = pageOf(sampleReport())
const DOCUMENT = ['--document', 'policies.json']

/** A folder with logs, names that lead to them, and other files. */
function folderOfLogs(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-simulate-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const write = (name: string, content: string | Buffer) => writeFileSync(join(folder, name), content)
  write('access.log', LOG)
  write('access.log.1', LOG)
  write('access.log.2.gz', gzipSync(LOG))
  write('rotated.log', '')
  linkSync(join(folder, 'access.log'), join(folder, 'hard.log'))
  symlinkSync('access.log', join(folder, 'soft.log'))
  write('policies.json', JSON.stringify(policyOf({ limit: 1, window: '1m' })))
  write('partners.txt', '192.0.2.9\n')
  write('page.html', '<!doctype html>\n<html lang="en">\n<title>a page of somebody</title>\n')
  write('report.html', EARLIER)
  return folder
}

/** The names of files, with what is in them and which files they are. */
function filesIn(folder: string) {
  return readdirSync(folder)
    .sort()
    .map((name) => [name, readFileSync(join(folder, name), 'latin1'), statSync(join(folder, name)).ino])
}

/** Runs a command in which names of files stand for those of a folder. */
function sluiceIn(folder: string, args: readonly string[]) {
  const paths = args.map((arg) => (/^[a-z]+\.[a-z0-9.]+$/.test(arg) ? join(folder, arg) : arg))
  return sluice(paths, { REDIS_URL: 'redis://127.0.0.1:1' })
}

test.each<[string, string, readonly string[]]>([
  [
    'the first of the logs that a shell puts after --html',
    'it exists, and is no report of sluice simulate',
    [...DOCUMENT, '--html', 'access.log', 'access.log.1', 'access.log.2.gz'],
  ],
  ['the log', 'it is the same file as', ['access.log', ...DOCUMENT, '--html', 'access.log']],
  ['a hard link to the log', 'it is the same file as', ['access.log', ...DOCUMENT, '--html', 'hard.log']],
  ['a symbolic link to the log', 'it is a symbolic link', ['access.log', ...DOCUMENT, '--html', 'soft.log']],
  ['the log behind a link', 'it is the same file as', ['soft.log', ...DOCUMENT, '--html', 'access.log']],
  ['an earlier report that it reads', 'it is the same file as', ['report.html', ...DOCUMENT, '--html', 'report.html']],
  ['the document', 'it is the same file as', ['access.log', ...DOCUMENT, '--html', 'policies.json']],
  ['an empty log', 'it exists, and is no report', ['access.log', ...DOCUMENT, '--html', 'rotated.log']],
  ['a page of somebody else', 'it exists, and is no report', ['access.log', ...DOCUMENT, '--html', 'page.html']],
  ['any of these before it reads logs', 'cannot write', ['missing.log', ...DOCUMENT, '--html', 'access.log']],
])('simulate does not replace %s', async (_, why, args) => {
  const folder = folderOfLogs()
  const before = filesIn(folder)
  const { code, stdout, stderr } = await sluiceIn(folder, ['simulate', ...args])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain(why)
  expect(filesIn(folder)).toEqual(before)
})

test('simulate replaces an earlier report', async () => {
  const folder = folderOfLogs()
  const report = join(folder, 'report.html')
  expect((await sluiceIn(folder, ['simulate', 'access.log', ...DOCUMENT, '--html', 'report.html'])).code).toBe(0)
  const page = readFileSync(report, 'utf8')
  expect(page).not.toBe(EARLIER)
  expect((await sluiceIn(folder, ['simulate', 'access.log', ...DOCUMENT, '--html', 'report.html'])).code).toBe(0)
  expect(readFileSync(report, 'utf8')).not.toBe(page)
})

test('whatever files the options of commands name, none is changed but a report', async () => {
  const name = fc.constantFrom(...readdirSync(folderOfLogs()))
  // A decider and a console run until they are ended.
  const commands = COMMANDS.filter((command) => !['serve', 'console'].includes(command.name))
  const command = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...commands.filter((each) => each.name === 'simulate')) },
    { weight: 1, arbitrary: fc.constantFrom(...commands) },
  )
  const line = command.chain(({ name: commandName, options, operands }) => {
    const oneOf = (keys: readonly string[]): fc.Arbitrary<readonly string[]> =>
      keys.length === 0 ? fc.constant([]) : fc.tuple(fc.constantFrom(...keys.map((key) => `--${key}`)), name)
    const parts: fc.Arbitrary<readonly string[]>[] = [
      fc.array(name, { maxLength: operands?.max ?? 0 }),
      fc.constant('document' in options ? DOCUMENT : []),
      oneOf(Object.keys(options).filter((key) => options[key]?.type === 'string')),
      oneOf(Object.keys(options).filter((key) => key === 'html')),
    ]
    const inAnyOrder = fc.tuple(...parts).chain((all) => fc.shuffledSubarray(all, { minLength: all.length }))
    return inAnyOrder.map((all) => [commandName, ...all.flat()])
  })
  await fc.assert(
    fc.asyncProperty(line, async (args) => {
      const folder = folderOfLogs()
      const before = filesIn(folder)
      await sluiceIn(folder, args)
      const others = (files: ReturnType<typeof filesIn>) => files.filter(([file]) => file !== 'report.html')
      expect(others(filesIn(folder))).toEqual(others(before))
    }),
    { numRuns: byEffort({ usual: 100, full: 3000 }) },
  )
})
