import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import { generateLog } from '../../bench/lib/log-lines.js'
import { formatOf } from '../../packages/simulate/src/formats/index.js'
import { openApart } from '../../packages/simulate/src/read/apart/open-apart.js'
import { type LogsInOrder, openLogs } from '../../packages/simulate/src/read/open-logs.js'
import type { LogRecord } from '../../packages/simulate/src/record.js'
import { SimulationError } from '../../packages/simulate/src/simulation-error.js'

const pathOf = (name: string) => fileURLToPath(new URL(`fixtures/${name}.log`, import.meta.url))
const FIELDS = [
  '.request.headers.Referer',
  '.req.headers',
  'ssl_protocol',
  'x-edge-location',
  'http_x_key',
  'remote_user',
]
const HEADERS = ['user-agent', 'host', 'referer', 'x-forwarded-for', 'x-key']

function fileOf(text: string | Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-apart-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'access.log')
  writeFileSync(file, text)
  return file
}

function plain(record: LogRecord) {
  const { startMs, resolutionMs, durationMs, ip, method, target, status, bytes, user, agent, host } = record
  return {
    ...{ startMs, resolutionMs, durationMs, ip, method, target, status, bytes, user, agent, host },
    fields: FIELDS.map((field) => record.field(field)),
    headers: HEADERS.map((name) => record.header(name)),
  }
}

async function read(logs: LogsInOrder) {
  const records: LogRecord[] = []
  for await (const batch of logs) records.push(...batch)
  return { formats: logs.formats, bytesTotal: logs.bytesTotal, counts: logs.counts, records: records.map(plain) }
}

/** What the thread reads, which is what this one reads. */
async function readBoth(files: readonly string[], format?: string) {
  const apart = await read(await openApart({ files, format, isLenient: false }, undefined))
  const given = format === undefined ? {} : { format: formatOf(format) }
  expect(apart).toEqual(await read(await openLogs(files, given)))
  return apart
}

test('a thread reads logs of every form, merged, as they are read without one', async () => {
  const names = ['cloudfront', 'aws-alb', 'pino-http', 'nginx-combined', 'caddy', 'traefik', 'apache-vhost-combined']
  const { records } = await readBoth(names.map(pathOf))
  expect(records.some(({ fields }) => fields[FIELDS.indexOf('x-edge-location')] !== undefined)).toBe(true)
  expect(records.some(({ headers }) => headers[HEADERS.indexOf('referer')] !== undefined)).toBe(true)
})

test('a thread reads a given form, and texts of all characters', async () => {
  const line = (second: number, agent: string, key: string) =>
    `192.0.2.7 [01/Mar/2026:00:00:0${second} +0000] "GET /é HTTP/1.1" 200 "${agent}" "${key}"\n`
  const format = '$remote_addr [$time_local] "$request" $status "$http_user_agent" "$http_x_key"'
  const { records } = await readBoth([fileOf(line(1, '日本 😀', '-') + line(2, 'curl', 'ключ'))], format)
  expect(records).toMatchObject([
    { target: '/é', agent: '日本 😀', user: undefined },
    { agent: 'curl', headers: expect.arrayContaining(['ключ']) },
  ])
})

test('a thread reads many batches in their order, with what does not parse', async () => {
  const log = Buffer.concat([...generateLog({ seed: 2, lines: 12_000, clients: 500 }), Buffer.from('rubbish\n')])
  const { records, counts } = await readBoth([fileOf(log)])
  expect(records).toHaveLength(12_000)
  expect(counts).toMatchObject({ lines: 12_001, unread: 1, examples: [expect.stringContaining('rubbish')] })
})

test('a mistake of the user is told by the thread as without one', async () => {
  const open = (files: readonly string[], isLenient = false) =>
    openApart({ files, format: undefined, isLenient }, undefined)
  await expect(open(['nowhere.log'])).rejects.toThrow(new SimulationError('cannot read "nowhere.log" (ENOENT)'))
  await expect(open(['nowhere.log'])).rejects.toBeInstanceOf(SimulationError)
  const log = Buffer.concat([...generateLog({ seed: 2, lines: 50, clients: 5 }), Buffer.from('rubbish\n')])
  await expect(read(await open([fileOf(log)]))).rejects.toThrow(/^1 of 51 lines are not combined: --lenient/)
  expect((await read(await open([fileOf(log)], true))).records).toHaveLength(50)
})

test('a signal ends the reading of a thread, and what was read comes still', async () => {
  const leaving = new AbortController()
  const file = fileOf(Buffer.concat([...generateLog({ seed: 2, lines: 60_000, clients: 5 })]))
  const logs = await openApart({ files: [file], format: undefined, isLenient: false }, leaving.signal)
  let count = 0
  for await (const batch of logs) {
    count += batch.length
    leaving.abort()
  }
  expect(count).toBeGreaterThan(0)
  expect(count).toBeLessThan(60_000)
  expect(logs.counts).toMatchObject({ lines: count, isPartial: true })
  const aborted = await openApart({ files: [file], format: undefined, isLenient: false }, AbortSignal.abort())
  expect((await read(aborted)).records).toHaveLength(0)
})
