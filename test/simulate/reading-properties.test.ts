import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { FORMATS, formatOf } from '../../packages/simulate/src/formats/index.js'
import { type LogOptions, openLogs } from '../../packages/simulate/src/read/open-logs.js'
import type { LogRecord } from '../../packages/simulate/src/record.js'
import { SimulationError } from '../../packages/simulate/src/simulation-error.js'
import { byEffort } from '../support/effort.js'
import { headOf, type Logged, WRITERS, type Writer } from './log-writers.js'

const numRuns = byEffort({ usual: 30, full: 1000 })

async function read(chunks: readonly Buffer[], options: LogOptions = {}) {
  const logs = await openLogs(['-'], { ...options, stdin: Readable.from(chunks) })
  const records: LogRecord[] = []
  for await (const batch of logs) records.push(...batch)
  return { records, counts: logs.counts, formats: logs.formats }
}

/** A text cut at any places. */
function cut(text: string, places: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text)
  const ends = [...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b)
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end)).filter(({ length }) => length > 0)
}

// Any text but an empty one, and "-", which logs write for none.
const agents = fc
  .oneof(
    fc.string({ unit: 'grapheme', maxLength: 40 }),
    fc.string({ unit: fc.constantFrom('"', '\\', ' ', '<', 'x', '\u001b', 'é') }),
  )
  .filter((text) => !['', '-', 'REDACTED'].includes(text) && text.isWellFormed())
const requests: fc.Arbitrary<Logged> = fc.record({
  endMs: fc.integer({ min: Date.UTC(2001, 8, 10), max: Date.UTC(2099, 0) }),
  durationMs: fc.integer({ min: 0, max: 100_000 }),
  ip: fc.oneof(fc.ipV4(), fc.ipV6()),
  method: fc.constantFrom('GET', 'POST', 'HEAD', 'PROPFIND', 'GETS'),
  target: fc.webPath().map((path) => `/${path.slice(1)}?a=%22b`),
  status: fc.integer({ min: 100, max: 599 }),
  bytes: fc.nat(),
  agent: agents,
})

function expected({ isExact, hasAgent }: Writer, request: Logged) {
  const { endMs, durationMs, ip, method, target, status, bytes, agent } = request
  return {
    startMs: isExact ? endMs - durationMs : Math.floor(endMs / 1000) * 1000,
    resolutionMs: isExact ? 1 : 1000,
    ip,
    method,
    target,
    status,
    bytes,
    agent: hasAgent ? agent : undefined,
  }
}

function plain({ startMs, resolutionMs, ip, method, target, status, bytes, agent }: LogRecord) {
  return { startMs, resolutionMs, ip, method, target, status, bytes, agent }
}

test.each(WRITERS)('what $by writes as $format is what is read', async (writer) => {
  const property = fc.asyncProperty(
    fc.array(requests, { minLength: 1, maxLength: 20 }),
    fc.array(fc.nat(), { maxLength: 10 }),
    async (logged, places) => {
      const text = headOf(writer) + logged.map((request) => `${writer.line(request)}\n`).join('')
      const { records } = await read(cut(text, places), { format: formatOf(writer.format) })
      const wanted = logged.map((request) => expected(writer, request))
      expect(records.map(plain)).toEqual(wanted.sort((a, b) => a.startMs - b.startMs))
    },
  )
  await fc.assert(property, { numRuns })
})

test('each form is told from the others', async () => {
  const ofEach = WRITERS.filter(({ format }) => !format.includes('$'))
  const property = fc.asyncProperty(
    fc.constantFrom(...ofEach),
    fc.array(requests, { minLength: 1, maxLength: 9 }),
    async (writer, logged) => {
      const { formats } = await read([
        Buffer.from(headOf(writer) + logged.map((request) => `${writer.line(request)}\n`).join('')),
      ])
      expect(formats).toEqual([writer.format])
    },
  )
  await fc.assert(property, { numRuns })
})

/** Bytes that are nothing, or almost a log. */
const rubbish = fc.oneof(
  fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
  fc.string({ maxLength: 500 }).map((text) => Buffer.from(text)),
  fc
    .tuple(
      fc.constantFrom(...WRITERS),
      fc.array(requests, { minLength: 1, maxLength: 5 }),
      fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 20 }),
    )
    .map(([writer, logged, changes]) => {
      const bytes = Buffer.from(headOf(writer) + logged.map((request) => `${writer.line(request)}\n`).join(''))
      for (const [place, byte] of changes) bytes[place % bytes.length] = byte
      return bytes
    }),
)

test('rubbish is read or named, whatever format is expected of it', async () => {
  const formats = [
    undefined,
    ...FORMATS,
    formatOf('$remote_addr $msec "$request" $upstream_addr'),
    formatOf('{"time": ".at"}'),
  ]
  const property = fc.asyncProperty(
    rubbish,
    fc.constantFrom(...formats),
    fc.boolean(),
    fc.boolean(),
    async (bytes, format, isLenient, isGzip) => {
      try {
        const packed = isGzip ? gzipSync(bytes) : bytes
        const { records } = await read([packed], { format, isLenient })
        for (const record of records) {
          expect(Number.isInteger(record.startMs)).toBe(true)
          expect([record.agent, record.header('host'), record.field('.a.b'), record.field('status')]).toHaveLength(4)
        }
      } catch (error) {
        if (!(error instanceof SimulationError)) throw error
        expect(error.message).toMatch(/^(?:standard input: |\d+ of \d+ lines )/)
      }
    },
  )
  await fc.assert(property, { numRuns: numRuns * 10 })
})
