import type { ServerResponse } from 'node:http'
import { STATUS_CODES } from 'node:http'
import { ownFieldsOf } from '@sluice/core/internal'
import type { Reply } from './exchange.js'
import { Problem } from './problem.js'

/** Bytes of an answer. */
const MAX_ANSWER_BYTES = 4_194_304

/** On every response. */
const HEADERS: Readonly<Record<string, string>> = {
  // Not compressed either: its length would show secrets beside text that a stranger chooses.
  'Cache-Control': 'no-store, no-transform',
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Cross-Origin-Opener-Policy': 'same-origin',
  'X-Frame-Options': 'DENY',
  'Content-Security-Policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}

/** Set by middleware before the console, for the pages of the application. */
const FOREIGN = [
  'Access-Control-Allow-Origin',
  'Access-Control-Allow-Credentials',
  'Access-Control-Expose-Headers',
  'Access-Control-Allow-Methods',
  'Access-Control-Allow-Headers',
  'ETag',
  'Last-Modified',
  'Content-Encoding',
]

/** A response that goes on, as long as there is anything to send. */
export class Stream {
  /** Called before anything is sent. @throws Problem where there is no room for it */
  readonly check: () => void
  /** Called once its head is sent. */
  readonly start: (response: ServerResponse) => void

  constructor({ check, start }: Pick<Stream, 'check' | 'start'>) {
    this.check = check
    this.start = start
  }
}

/** Sends the head of a stream, and starts it. @throws Problem */
export function sendStream(response: ServerResponse, { check, start }: Stream, isHead: boolean): void {
  if (response.headersSent || response.destroyed) return
  check()
  setHeaders(response, 'application/x-ndjson; charset=utf-8', { 'X-Accel-Buffering': 'no' })
  response.statusCode = 200
  if (isHead) {
    response.end()
    return
  }
  response.flushHeaders()
  start(response)
}

function setHeaders(response: ServerResponse, type: string, headers: Reply['headers']): void {
  for (const name of FOREIGN) response.removeHeader(name)
  for (const [name, value] of Object.entries({ ...HEADERS, ...headers })) response.setHeader(name, value)
  response.setHeader('Content-Type', type)
}

/** Writes a response, whatever middleware has set before. */
export function send(response: ServerResponse, { status, type, body, headers }: Reply, isHead: boolean): void {
  if (response.headersSent || response.destroyed) return
  setHeaders(response, type, headers)
  if (status !== 304) response.setHeader('Content-Length', Buffer.byteLength(body))
  // The rest of such a body is not read.
  if ((status === 408 || status === 413) && response.req.httpVersionMajor < 2) response.setHeader('Connection', 'close')
  response.statusCode = status
  response.end(isHead ? undefined : body)
}

/** @throws Problem where it is too large */
export function jsonReply(value: unknown): Reply {
  const body = jsonText(value)
  if (body.length > MAX_ANSWER_BYTES) throw new Problem(500, 'the answer is too large: ask for fewer entries')
  return { status: 200, type: 'application/json; charset=utf-8', body, headers: {} }
}

export function problemReply(
  { status, message, more }: Problem,
  headers: Readonly<Record<string, string>> = {},
): Reply {
  const { retryAfterMs } = ownFieldsOf(more)
  return {
    status,
    type: 'application/problem+json; charset=utf-8',
    body: jsonText({ type: 'about:blank', title: STATUS_CODES[status], status, detail: message, ...more }),
    headers: {
      ...headers,
      ...(typeof retryAfterMs === 'number' && { 'Retry-After': String(Math.ceil(retryAfterMs / 1000)) }),
    },
  }
}

/** JSON in plain ASCII. Everything but plain ASCII, and what is markup, as escapes: names are written by attackers, and logs and terminals show this. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value).replace(
    /[<>&'\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
