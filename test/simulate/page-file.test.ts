import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { writeReport } from '../../packages/cli/src/commands/simulate/write-file.js'
import { PAGE_START } from '../../packages/simulate/src/report/html/page.js'
import { ensureBuiltCore } from '../support/built-core.js'
import { until } from '../support/until.js'

const EARLIER = `${PAGE_START}earlier`

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'sluice-report-'))
  file = join(folder, 'report.html')
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true })
})

test('a report is a file that only its owner reads, also where one that everyone reads was before', async () => {
  writeFileSync(file, EARLIER, { mode: 0o644 })
  await writeReport(file, 'ä report')
  expect(readFileSync(file, 'utf8')).toBe('ä report')
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(readdirSync(folder)).toEqual(['report.html'])
})

test('a report is never written through a link, to a device or over a folder', async () => {
  const target = join(folder, 'target')
  writeFileSync(target, 'theirs')
  symlinkSync(target, file)
  await expect(writeReport(file, 'report')).rejects.toThrow(
    `cannot write "${file}": it is a symbolic link; name another file`,
  )
  rmSync(file)
  symlinkSync(join(folder, 'nowhere'), file)
  await expect(writeReport(file, 'report')).rejects.toThrow('it is a symbolic link')
  expect(readFileSync(target, 'utf8')).toBe('theirs')
  const socket = join(folder, 'socket')
  const server = createServer().listen(socket)
  await once(server, 'listening')
  await expect(writeReport(socket, 'report')).rejects.toThrow('it is no regular file; name another file')
  await expect(writeReport(folder, 'report')).rejects.toThrow('it is a folder; name another file')
  expect(readdirSync(folder).sort()).toEqual(['report.html', 'socket', 'target'])
  server.close()
})

test('a path that cannot be written is named with the reason', async () => {
  const missing = join(folder, 'missing', 'report.html')
  await expect(writeReport(missing, 'report')).rejects.toThrow(
    `cannot write "${missing}": the folder does not exist (ENOENT)`,
  )
  writeFileSync(file, EARLIER)
  await expect(writeReport(join(file, 'report.html'), 'report')).rejects.toThrow(
    'a part of the path is no folder (ENOTDIR)',
  )
  await expect(writeReport(join(folder, 'x'.repeat(250)), 'report')).rejects.toThrow(
    'the name is too long (ENAMETOOLONG)',
  )
  expect(readdirSync(folder)).toEqual(['report.html'])
})

test('a signal removes a half-written report, keeps the earlier one, and ends the process', async () => {
  writeFileSync(file, EARLIER)
  const kill = vi.spyOn(process, 'kill').mockReturnValue(true)
  const others = process.listenerCount('SIGINT')
  const writing = writeReport(file, 'x'.repeat(50_000_000))
  await until('half of the report lies beside the earlier one', () => readdirSync(folder).length === 2, { everyMs: 1 })
  process.emit('SIGINT', 'SIGINT')
  await writing
  expect(kill).toHaveBeenCalledExactlyOnceWith(process.pid, 'SIGINT')
  expect(readdirSync(folder)).toEqual(['report.html'])
  expect(readFileSync(file, 'utf8')).toBe(EARLIER)
  expect(process.listenerCount('SIGINT')).toBe(others)
})

test('where space runs out, the earlier report stays, and nothing lies beside it', () => {
  ensureBuiltCore()
  writeFileSync(file, EARLIER)
  const program = `import { replaceFile } from '@sluice/core/internal'
    await replaceFile(process.argv[1], 'x'.repeat(5_000_000)).catch(({ code }) => console.log(code))`
  // A bound on the size of files is as a full disk, and needs no disk of its own.
  const bounded = `trap '' XFSZ; ulimit -f 1000; exec "$0" "$@"`
  const args = ['-c', bounded, process.execPath, '--input-type=module', '-e', program, file]
  const { stdout, stderr } = spawnSync('bash', args, { encoding: 'utf8', cwd: import.meta.dirname })
  expect({ stdout, stderr }).toEqual({ stdout: 'EFBIG\n', stderr: '' })
  expect(readFileSync(file, 'utf8')).toBe(EARLIER)
  expect(readdirSync(folder)).toEqual(['report.html'])
})
