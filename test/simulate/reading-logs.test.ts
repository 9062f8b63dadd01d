import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough, Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import { clfDate, combinedLine, generateLog, loggedRequests } from '../../bench/lib/log-lines.js'
import { formatOf } from '../../packages/simulate/src/formats/index.js'
import { type LogOptions, openLogs } from '../../packages/simulate/src/read/open-logs.js'
import type { LogRecord } from '../../packages/simulate/src/record.js'

const dir = mkdtempSync(join(tmpdir(), 'sluice-reading-'))
afterAll(() => rmSync(dir, { recursive: true }))

let files = 0
function fileOf(...parts: readonly (string | Uint8Array)[]): string {
  const file = join(dir, `${files++}.log`)
  writeFileSync(file, Buffer.concat(parts.map((part) => Buffer.from(part))))
  return file
}

async function read(paths: readonly string[], options: LogOptions = {}) {
  const logs = await openLogs(paths, options)
  const records: LogRecord[] = []
  for await (const batch of logs) records.push(...batch)
  return { logs, records, counts: logs.counts }
}

const FROM_MS = Date.UTC(2026, 2, 1)
const agentless = { method: 'GET', target: '/', status: 200, bytes: 1, agent: 'curl/8', durationMs: 0, client: 0 }
const lineAt = (ms: number, ip = '192.0.2.1') => `${combinedLine({ ...agentless, endMs: FROM_MS + ms, ip })}\n`
const lines = (count: number, stepMs = 1000) => Array.from({ length: count }, (_, i) => lineAt(i * stepMs)).join('')
const log = (options: Partial<Parameters<typeof generateLog>[0]> = {}) =>
  Buffer.concat([...generateLog({ seed: 1, lines: 2000, clients: 100, ...options })])

test('a log is read as it was written', async () => {
  const options = { seed: 1, lines: 5000, clients: 300 }
  const { logs, records, counts } = await read([fileOf(log(options))])
  expect(logs.formats).toEqual(['combined'])
  expect(
    records.map(({ ip, method, target, status, bytes, agent, startMs }) => ({
      ip,
      method,
      target,
      status,
      bytes,
      agent,
      startMs,
    })),
  ).toEqual(
    [...loggedRequests(options)].map(({ ip, method, target, status, bytes, agent, endMs }) => ({
      ip,
      method,
      target,
      status,
      bytes,
      agent,
      startMs: Math.floor(endMs / 1000) * 1000,
    })),
  )
  expect(counts).toMatchObject({ lines: 5000, unread: 0, late: 0, isPartial: false, bytesRead: logs.bytesTotal })
})

test('gzip is read, also where it has several members or another name', async () => {
  const [first, second] = [log({ seed: 1 }), log({ seed: 2, fromMs: FROM_MS + 60_000 })]
  const { records } = await read([fileOf(gzipSync(first), gzipSync(second))])
  expect(records).toHaveLength(4000)
})

test('standard input is read, gzip too', async () => {
  expect((await read(['-'], { stdin: Readable.from([log()]) })).records).toHaveLength(2000)
  const { logs, records } = await read(['-'], { stdin: Readable.from([gzipSync(log())]) })
  expect(records).toHaveLength(2000)
  expect(logs.bytesTotal).toBeUndefined()
  await expect(openLogs(['-', '-'])).rejects.toThrow('expected standard input (-) once')
})

test('a named pipe is read, as a shell makes one for <(…)', async () => {
  const pipe = join(dir, 'pipe')
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe])
  const cat = spawn('sh', ['-c', 'cat "$0" > "$1"', fileOf(log()), pipe], { stdio: 'ignore' })
  const { records } = await read([pipe])
  expect(records).toHaveLength(2000)
  if (cat.exitCode === null) await once(cat, 'exit')
})

test('a named pipe that brings nothing more ends by a signal', async () => {
  const pipe = join(dir, 'silent')
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe])
  const writer = spawn('sh', ['-c', '(cat "$0"; exec sleep 1000) > "$1"', fileOf(log()), pipe], {
    stdio: 'ignore',
    detached: true,
  })
  const leaving = new AbortController()
  const logs = await openLogs([pipe], { signal: leaving.signal })
  setTimeout(() => leaving.abort(), 10)
  let count = 0
  for await (const batch of logs) count += batch.length
  expect(count).toBeLessThanOrEqual(2000)
  expect(logs.counts.isPartial).toBe(true)
  process.kill(-(writer.pid as number))
  await once(writer, 'exit')
})

test('a named pipe that nothing writes to ends by a signal', async () => {
  const pipe = join(dir, 'unwritten')
  execFileSync('sh', ['-c', 'mkfifo "$0"', pipe])
  const leaving = new AbortController()
  setTimeout(() => leaving.abort(), 10)
  const logs = await openLogs([pipe], { signal: leaving.signal })
  for await (const batch of logs) expect(batch).toEqual([])
  expect(logs.counts.isPartial).toBe(true)
  // One that is opened after the signal.
  expect((await openLogs([pipe], { signal: leaving.signal })).counts.lines).toBe(0)
})

test('several logs are merged by time, whatever their forms and order', async () => {
  const parts: string[][] = [[], [], []]
  const all = [...loggedRequests({ seed: 3, lines: 6000, clients: 50 })]
  all.forEach((request, i) => parts[i % 7 === 0 ? 0 : i % 2 === 0 ? 1 : 2]?.push(`${combinedLine(request)}\n`))
  const common = parts[1]?.map((line) => line.replace(/ "-" ".*"$/m, ''))
  const later = log({ fromMs: FROM_MS + 3_600_000, lines: 500 })
  const { logs, records, counts } = await read(
    [
      fileOf(gzipSync(later)),
      fileOf(...(parts[0] as string[])),
      fileOf(...(common as string[])),
      fileOf(...(parts[2] as string[])),
    ],
    { maxSorted: 100 },
  )
  expect(logs.formats).toEqual(['combined', 'combined', 'common', 'combined'])
  const starts = records.map(({ startMs }) => startMs)
  expect(starts).toEqual([...starts].sort((a, b) => a - b))
  expect(
    records
      .slice(0, 6000)
      .map(({ ip }) => ip)
      .sort(),
  ).toEqual(all.map(({ ip }) => ip).sort())
  expect(counts).toMatchObject({ lines: 6500, late: 0 })
})

const TIMED = formatOf('$remote_addr $msec $request_time "$request" $status')
const timed = (endMs: number, durationMs: number, ip = '192.0.2.1') =>
  `${ip} ${((FROM_MS + endMs) / 1000).toFixed(3)} ${(durationMs / 1000).toFixed(3)} "GET / HTTP/1.1" 200\n`

test('requests come in the order of their starts, though lines are in that of their ends', async () => {
  const file = fileOf(timed(100, 10, '192.0.2.1'), timed(5000, 4990, '192.0.2.2'), timed(5001, 1, '192.0.2.3'))
  const { records } = await read([file], { format: TIMED })
  expect(records.map(({ ip, startMs }) => [ip, startMs - FROM_MS])).toEqual([
    ['192.0.2.2', 10],
    ['192.0.2.1', 90],
    ['192.0.2.3', 5000],
  ])
})

test('lines that come too late are counted, and never turn the clock back', async () => {
  const many = Array.from({ length: 20_000 }, (_, i) => timed(i * 1000, 0)).join('')
  const file = fileOf(many, timed(20_000_000, 19_999_000), timed(20_000_001, 0))
  const { records, counts } = await read([file], { format: TIMED, maxSorted: 100 })
  expect(counts.late).toBe(1)
  expect(counts.caveats).toEqual([expect.stringMatching(/^1 of 20002 lines are up to \d+ s earlier/)])
  expect(records).toHaveLength(20_002)
  const starts = records.map(({ startMs }) => startMs)
  expect(starts).toEqual([...starts].sort((a, b) => a - b))
  expect((await read([fileOf(timed(0, 0), timed(9000, 8000))], { format: TIMED })).counts.late).toBe(0)
})

test('the lines that wait become more once some were late', async () => {
  // Each hundredth request takes so long that 20,000 others end meanwhile: 400 are late where nothing grows.
  const parts = Array.from({ length: 60_000 }, (_, i) => timed(i * 1000, i % 100 === 0 && i > 20_000 ? 20_000_000 : 0))
  const { counts } = await read([fileOf(parts.join(''))], { format: TIMED })
  expect(counts.late).toBeGreaterThan(0)
  expect(counts.late).toBeLessThan(300)
})

test('a clock that was set back is an error that says so, or is accepted', async () => {
  const file = fileOf(lines(6000), lines(6000))
  await expect(read([file], { maxSorted: 1000 })).rejects.toThrow(/of 12000 lines are up to \d+ s earlier.*--lenient/)
  const { records } = await read([file], { maxSorted: 1000, isLenient: true })
  expect(records.at(-1)?.startMs).toBe(FROM_MS + 5_999_000)
})

test('lines that do not parse are counted, the first few shown without what controls a terminal', async () => {
  const file = fileOf(lines(600), 'rubbish\u001b[31m\n', lines(600), '\n', `${'x'.repeat(1000)}\r\n`)
  const { records, counts } = await read([file])
  expect(records).toHaveLength(1200)
  expect(counts).toMatchObject({ lines: 1203, unread: 2 })
  expect(counts.examples[0]).toMatch(/\.log", line 601: rubbish\\u001b\[31m$/)
  expect(counts.examples[1]?.length).toBeLessThan(300)
})

test('more than 1 % of lines that do not parse are an error at the end, or are skipped', async () => {
  const file = fileOf(lines(99), 'rubbish\n', 'rubbish\n', lines(50))
  await expect(read([file])).rejects.toThrow(
    /^2 of 151 lines are not combined: --lenient skips them\n {2}".*", line 100: rubbish/,
  )
  expect((await read([file], { isLenient: true })).records).toHaveLength(149)
})

test('a line of 10 MB is counted as one that does not parse', async () => {
  const { records, counts } = await read([fileOf(lines(200), 'x'.repeat(10_000_000), '\n', lines(200))])
  expect(records).toHaveLength(400)
  expect(counts).toMatchObject({
    lines: 401,
    unread: 1,
    examples: [expect.stringMatching(/line \d+: \(longer than 1048576 bytes\)/)],
  })
})

test('a last line that is half written is left out, and a whole one is read without its break', async () => {
  const half = await read([fileOf(lines(5), lineAt(6000).slice(0, 30))])
  expect(half.records).toHaveLength(5)
  expect(half.counts).toMatchObject({
    lines: 5,
    unread: 0,
    caveats: [expect.stringMatching(/ends in half a line, which was left out\.$/)],
  })
  expect((await read([fileOf(lines(5), lineAt(6000).trimEnd())])).records).toHaveLength(6)
})

test('a log that is being written is read to its size when it was opened', async () => {
  const file = fileOf(log({ lines: 20_000 }))
  const logs = await openLogs([file])
  let count = 0
  for await (const batch of logs) {
    count += batch.length
    appendFileSync(file, log({ lines: 10_000, fromMs: FROM_MS + 3_600_000 }))
  }
  expect(count).toBe(20_000)
})

test('a log that becomes shorter ends there', async () => {
  const file = fileOf(log({ lines: 20_000 }))
  const logs = await openLogs([file])
  let count = 0
  for await (const batch of logs) {
    if (count === 0) truncateSync(file, 1_000_000)
    count += batch.length
  }
  expect(count).toBeLessThan(20_000)
  expect(logs.counts).toMatchObject({
    isPartial: true,
    caveats: [expect.stringMatching(/became shorter while it was read/)],
  })
})

test('gzip that ends too early is read as far as it goes', async () => {
  const whole = gzipSync(log({ lines: 20_000 }))
  const { records, counts } = await read([fileOf(whole.subarray(0, whole.length >> 1))])
  expect(records.length).toBeGreaterThan(1000)
  expect(counts).toMatchObject({
    isPartial: true,
    caveats: [expect.stringMatching(/ends within its gzip data: line \d+ is the last that was read\.$/)],
  })
  const damaged = Buffer.from(whole)
  damaged.fill(0xff, whole.length >> 1)
  expect((await read([fileOf(damaged)], { isLenient: true })).counts.caveats[0]).toMatch(/has damaged gzip data/)
})

test('reading ends by a signal, and what was read comes still', async () => {
  const stopping = new AbortController()
  const logs = await openLogs([fileOf(log({ lines: 50_000 }))], { signal: stopping.signal })
  let count = 0
  for await (const batch of logs) {
    count += batch.length
    stopping.abort()
  }
  expect(count).toBeGreaterThan(0)
  expect(count).toBeLessThan(50_000)
  expect(logs.counts.isPartial).toBe(true)
})

test('reading from a silent pipe ends by a signal', async () => {
  const stopping = new AbortController()
  const stdin = new PassThrough()
  stdin.write(log())
  const logs = await openLogs(['-'], { signal: stopping.signal, stdin })
  setTimeout(() => stopping.abort(), 50)
  let count = 0
  for await (const batch of logs) count += batch.length
  expect(count).toBe(2000)
  expect(logs.counts.isPartial).toBe(true)
})

test('an empty log is named, and only empty ones are an error', async () => {
  const [empty, full] = [fileOf(), fileOf(lines(3))]
  const { records, counts } = await read([empty, full])
  expect(records).toHaveLength(3)
  expect(counts.caveats).toEqual([`${JSON.stringify(empty)} has no lines.`])
  await expect(openLogs([empty])).rejects.toThrow('expected lines, got none')
})

test.each([
  ['binary data', Buffer.from([1, 2, 0, 3, 10]), /expected text or gzip, got binary data/],
  ['zstd', Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 1]), /got zstd \(decompress it by zstdcat\)/],
  ['UTF-16', Buffer.from('\ufeff192.0.2.1\n', 'utf16le'), /got UTF-16 \(convert it by iconv\)/],
  ['gzip of binary data', gzipSync(Buffer.from([1, 2, 0, 3, 10])), /its format is none of|got binary data/],
  ['gzip without data', gzipSync('x'.repeat(100)).subarray(0, 12), /ends within its gzip data/],
  [
    'prose',
    'Once upon a time\nthere was a log.\n',
    /its format is none of .*caddy, .*its first line is "Once upon a time"/,
  ],
  ['one long line', 'x'.repeat(20_000_000), /its format|expected lines/],
])('%s is an error that names what came', async (_, bytes, message) => {
  await expect(openLogs([fileOf(bytes)])).rejects.toThrow(message)
})

test('what cannot be opened is an error that names it', async () => {
  await expect(openLogs([join(dir, 'none.log')])).rejects.toThrow(/^cannot read ".*none\.log" \(ENOENT\)$/)
  await expect(openLogs([dir])).rejects.toThrow(/expected a file, got a directory/)
  await expect(openLogs([fileOf(lines(3))], { format: formatOf('caddy') })).rejects.toThrow(/expected the format caddy/)
})

test.each([
  ['29/Feb/2024:23:59:60 +0000', '2024-03-01T00:00:00Z'],
  ['31/Dec/1999:23:30:00 -0130', '2000-01-01T01:00:00Z'],
  ['01/Jan/2027:00:10:00 +0545', '2026-12-31T18:25:00Z'],
  ['29/Feb/2023:00:00:00 +0000', undefined],
  ['01/Foo/2023:00:00:00 +0000', undefined],
  ['01/Mai/2023:00:00:00 +0000', undefined],
  ['01/Jan/2023:24:00:00 +0000', undefined],
  ['01/Jan/2023:00:00:00', undefined],
  ['01/Jan/2023:00:00:61 +0000', undefined],
  ['01/Jan/0000:00:00:00 +0000', undefined],
  ['01/Jan/9999:00:00:00 +0000', undefined],
])('the date %s is %s', async (date, instant) => {
  const line = lineAt(0).replace(clfDate(FROM_MS), date)
  const { records } = await read([fileOf(lineAt(0), lineAt(0), line)], { isLenient: true })
  const others = records.map(({ startMs }) => startMs).filter((startMs) => startMs !== FROM_MS)
  expect(others).toEqual(instant === undefined ? [] : [Date.parse(instant)])
})

const JSON_TIMES = '{"time": ".at", "start": ".from", "durationMs": ".took", "ip": ".ip"}'

test.each([
  ['2024-02-29T23:59:59Z', '2024-02-29T23:59:59Z'],
  ['2026-03-01T00:30:00+01:00', '2026-02-28T23:30:00Z'],
  ['2026-02-29T00:00:00Z', undefined],
  ['2026-02-30T00:00:00Z', undefined],
  ['2026-04-31T00:00:00Z', undefined],
  ['2026-01-00T00:00:00Z', undefined],
  ['0000-01-01T00:00:00Z', undefined],
  ['0026-03-01T00:00:00Z', undefined],
  ['9999-12-31T23:59:59Z', undefined],
])('the instant %s of a line of JSON is %s', async (at, instant) => {
  const other = JSON.stringify({ at: '2026-03-01T00:00:00Z', ip: '192.0.2.1' })
  const file = fileOf(`${other}\n${other}\n`, `${JSON.stringify({ at, ip: '192.0.2.2' })}\n`)
  const { records, counts } = await read([file], { format: formatOf(JSON_TIMES), isLenient: true })
  const others = records.filter(({ ip }) => ip === '192.0.2.2').map(({ startMs }) => startMs)
  expect(others).toEqual(instant === undefined ? [] : [Date.parse(instant)])
  expect(counts.unread).toBe(instant === undefined ? 1 : 0)
})

test.each([
  ['JSON with the end', JSON_TIMES, (s: string) => `{"at":"2026-03-01T00:00:00Z","took":${s}000,"ip":"192.0.2.1"}`],
  ['JSON with the start', JSON_TIMES, (s: string) => `{"from":"2026-03-01T00:00:00Z","took":${s}000,"ip":"192.0.2.1"}`],
  ['nginx', '$remote_addr $msec $request_time', (s: string) => `192.0.2.1 1772323200.000 ${s}`],
])('a line whose request took more than 366 days is one that does not parse: %s', async (_, format, lineOf) => {
  const longest = 366 * 86_400
  const absurd = [`${longest + 1}`, `1${'0'.repeat(12)}`, `1${'0'.repeat(15)}`, `1${'0'.repeat(400)}`]
  const all = [...Array.from({ length: 10 }, () => lineOf('1')), ...absurd.map(lineOf), lineOf(`${longest}`)]
  const { records, counts } = await read([fileOf(`${all.join('\n')}\n`)], { format: formatOf(format), isLenient: true })
  expect(records.map(({ durationMs }) => durationMs).toSorted()).toEqual([...Array(10).fill(1000), longest * 1000])
  expect(counts).toMatchObject({ unread: absurd.length })
  expect(counts.examples[0]).toMatch(/\.log", line 11: /)
})

test('lines that end in CR LF have no CR in their last part', async () => {
  const file = fileOf(`192.0.2.1 - - [${clfDate(FROM_MS)}] "GET / HTTP/1.1" 200 17\r\n`)
  const { logs, records } = await read([file])
  expect(logs.formats).toEqual(['common'])
  expect(records[0]?.bytes).toBe(17)
})

test('lines end in CR LF, begin with a byte order mark, and contain what is no UTF-8', async () => {
  const bad = Buffer.concat([
    Buffer.from(lineAt(1).slice(0, -8)),
    Buffer.from([0xff, 0xc3, 0xa9]),
    Buffer.from('"\r\n'),
  ])
  const { records } = await read([fileOf('\ufeff', lineAt(0).replace('\n', '\r\n'), bad)])
  expect(records.map(({ ip }) => ip)).toEqual(['192.0.2.1', '192.0.2.1'])
  expect(records[1]?.agent).toContain('\ufffdé')
})
