// Deep: measures. Runs alone: it measures CPU time.
import { afterAll, expect, test } from 'vitest'

import { difference, type Measured, MeasuredProcess, type Setup } from './measured.js'
import { BATCH, describedByGateway, describedInJson, type HostileRequest, hostileRequests } from './requests.js'

/** The highest cost of a request of the largest size above a bare server, in ms of CPU time. Earlier findings took 10 to 180. */
const MOST_MS = 1
/** The same for one request of a batch, which has less room for text. */
const MOST_MS_IN_BATCH = 0.1
/** Characters of a request without the rest of its head: the parser of Node accepts 16 KiB, over HTTP/2 64 KiB. */
const LENGTH = 15_500
const LENGTH_HTTP2 = 60_000
/** Rounds, and requests in each. All requests are measured briefly first, and the most expensive ones again. */
const LOOKS = [3, 2] as const
const ROUNDS = [15, 3] as const
const DEAREST = 5
/**
 * Repeated, as other programs of the machine can only add to a measurement. For a path of 60 kB, Fastify's router itself takes 4
 * to 8 ms, which vary by more than the bound.
 */
const ATTEMPTS = 8
const SERVERS = [
  'Express over HTTP/1',
  'Koa over HTTP/1',
  'Koa over HTTP/2',
  'Fastify over HTTP/1',
  'Fastify over HTTP/2',
  'deciders',
]

/** Statuses for a client; others would be an error of Sluice. 0 means that the framework or Node ended the stream. */
const STATUSES = [0, 200, 204, 400, 403, 404, 413, 414, 429, 431, 503]

const rows: string[][] = []
const started: MeasuredProcess[] = []
afterAll(() => {
  for (const measured of started) measured.stop()
  if (rows.length > 0) console.log(tableOf(rows))
})

test.each(SERVERS)('%s: no hostile request costs much more than on a bare server', async (name) => {
  const measured = await MeasuredProcess.start(name, name === 'deciders' ? 'deciders.js' : 'server.js')
  started.push(measured)
  const tooDear: string[] = []
  for (const setup of measured.setups) {
    for (const { what, requests, share } of trialsOf(name, setup)) {
      const dearest = await dearestOf(measured, setup, requests)
      if (!dearest) continue
      const ms = dearest.ms / share
      rows.push([name, what, ms.toFixed(2), String(dearest.status), dearest.request.name])
      if (ms > (share === 1 ? MOST_MS : MOST_MS_IN_BATCH)) tooDear.push(`${what}, ${dearest.request.name}: ${ms} ms`)
    }
  }
  measured.stop()
  expect(tooDear).toEqual([])
})

interface Trial {
  /** Its name in the report. */
  readonly what: string
  readonly requests: readonly HostileRequest[]
  /** The number of described requests in each. */
  readonly share: number
}

function trialsOf(name: string, setup: Setup): Trial[] {
  const what = setup.name
  const isHttp2 = name.endsWith('HTTP/2')

  if (name !== 'deciders')
    return [{ what, requests: hostileRequests(isHttp2 ? LENGTH_HTTP2 : LENGTH, isHttp2, setup.reads), share: 1 }]
  const dialect = what.replace('dialect: ', '')
  const requests = hostileRequests(LENGTH_HTTP2, isHttp2, setup.reads)
  if (dialect !== 'json') return [{ what, requests: describedByGateway(dialect, requests), share: 1 }]
  return [
    { what, requests: describedInJson(requests, false), share: 1 },
    { what: `${what}, one of a batch of ${BATCH}`, requests: describedInJson(requests, true), share: BATCH },
  ]
}

async function dearestOf(
  measured: MeasuredProcess,
  setup: Setup,
  requests: readonly HostileRequest[],
): Promise<Measured | undefined> {
  const looks: Measured[] = []
  for (const request of requests) {
    const look = await difference(measured, setup, request, ...LOOKS)
    expect(STATUSES, `${measured.name}, ${setup.name}, ${request.name}`).toContain(look.status)
    looks.push(look)
  }
  if (looks.length === 0) return undefined
  looks.sort((a, b) => b.ms - a.ms)
  const found: Measured[] = []
  for (const { request } of looks.slice(0, DEAREST)) found.push(await steadily(measured, setup, request))
  return found.reduce((most, each) => (each.ms > most.ms ? each : most))
}

async function steadily(measured: MeasuredProcess, setup: Setup, request: HostileRequest): Promise<Measured> {
  let least = await difference(measured, setup, request, ...ROUNDS)
  for (let i = 1; i < ATTEMPTS && least.ms > MOST_MS; i++) {
    const again = await difference(measured, setup, request, ...ROUNDS)
    if (again.ms < least.ms) least = again
  }
  return least
}

function tableOf(all: readonly string[][]): string {
  const head = ['server', 'what', 'ms', 'status', 'dearest request']
  const lines = [head, head.map(() => '---'), ...all].map(
    (row) => `| ${row.map((text) => text.replaceAll('|', '\\|')).join(' | ')} |`,
  )
  return `\nCPU time of the dearest request above a bare server:\n\n${lines.join('\n')}\n`
}
