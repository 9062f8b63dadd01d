import { byIp } from '@sluice/core'
import { type HttpContext, pathOf } from '@sluice/core/http'
import type { Timing } from '@sluice/core/internal'
import type { LogRecord } from '../record.js'
import type { HashedAddresses } from './hashed-addresses.js'
import { SimulatedResponse } from './simulated-response.js'

/** What every request of a log is taken to have where its record lacks it, by the names of `--assume`. */
export interface Assumed {
  readonly host?: string
  readonly route?: string
  readonly user?: string
  readonly status?: number
  readonly durationMs?: number
  readonly bytes?: number
  /** By their names in lower case. */
  readonly headers: ReadonlyMap<string, string>
}

/** How records are read as requests. */
export interface Reading {
  readonly assumed: Assumed
  /** The address of the client. */
  readonly addressOf: (record: LogRecord) => string | undefined
  /** The addresses of recordings. */
  readonly hashed: HashedAddresses
  /** Fields of records that replace those that formats know, by the names of `--field`. */
  readonly fields: ReadonlyMap<string, string>
  /** Whether code resolves users. */
  readonly hasUser: boolean
  /** Whether anything reads headers: they are not looked for where nothing does. */
  readonly readsHeaders: boolean
}

/** A request of a log in the form of the core. */
export class RecordContext implements HttpContext<LogRecord> {
  readonly request: LogRecord
  /** The address of the client. A request without one has a wrong one: it gets 400, where an error would end the replay. */
  readonly ip: string
  /** The client as limits by address count it: IPv6 by /64. */
  readonly address: string
  /** Whether its client is marked as one that must not be refused. */
  isGood = false
  /** Whether a policy has refused it, also one that only reports. */
  isRefused = false
  readonly reading: Reading
  /** When it arrives, in log time. */
  readonly arrivedAt: number
  readonly proxyTrust = 'named'
  /** When the current policies got it: those before them may have delayed it. */
  stepFrom: number
  /** For how long policies have it wait, in ms. */
  waitedMs = 0
  /** The policies that slow its response down. */
  slowedBy: { waited(ms: number): void }[] | undefined
  #response: SimulatedResponse | undefined
  #path: string | undefined
  readonly #time: Timing

  constructor(request: LogRecord, reading: Reading, arrivedAt: number, time: Timing) {
    this.#time = time
    this.request = request
    this.reading = reading
    this.arrivedAt = arrivedAt
    this.stepFrom = arrivedAt
    this.ip = reading.addressOf(request) ?? UNKNOWN
    this.address = this.ip.includes(':') ? grouped(this, this.ip) : this.ip
  }

  get response(): SimulatedResponse {
    this.#response ??= new SimulatedResponse(this.method, this.#bodyBytes, this.#time)
    return this.#response
  }

  /** Whether something has looked at its response, and may wait for its end. */
  get hasResponse(): boolean {
    return this.#response !== undefined
  }

  get method(): string {
    return this.request.method ?? 'GET'
  }

  get target(): string {
    return this.request.target ?? '/'
  }

  get path(): string {
    this.#path ??= pathOf(this.target)
    return this.#path
  }

  get route(): string | undefined {
    const { fields, assumed } = this.reading
    const name = fields.get('route')
    return (name === undefined ? undefined : this.request.field(name)) ?? assumed.route
  }

  get status(): number | undefined {
    return this.request.status ?? this.reading.assumed.status
  }

  get durationMs(): number {
    return this.request.durationMs ?? this.reading.assumed.durationMs ?? 0
  }

  get bytes(): number {
    return Math.min(Math.floor(this.request.bytes ?? this.reading.assumed.bytes ?? 0), MAX_BYTES)
  }

  get #bodyBytes(): number | undefined {
    const name = this.reading.fields.get('content-bytes')
    return name === undefined ? undefined : Number(this.request.field(name) ?? 0) || 0
  }

  header(name: string): string | undefined {
    if (!this.reading.readsHeaders) return undefined
    const { fields, assumed } = this.reading
    const field = fields.size > 0 ? fields.get(`header:${name}`) : undefined
    const { request } = this
    const sent = field === undefined ? ofRecord(request, name) : request.field(field)
    if (sent !== undefined) return sent
    if (name === 'host') return assumed.host
    return (name === 'cookie' ? this.#cookies : undefined) ?? assumed.headers.get(name)
  }

  /** Cookies that are fields of their own. */
  get #cookies(): string | undefined {
    const sent: string[] = []
    for (const [name, field] of this.reading.fields) {
      const value = name.startsWith('cookie:') ? this.request.field(field) : undefined
      if (value !== undefined) sent.push(`${name.slice('cookie:'.length)}=${value}`)
    }
    return sent.length === 0 ? undefined : sent.join('; ')
  }

  signedCookie(): undefined {
    return undefined
  }

  getResponseHeader(): undefined {
    return undefined
  }
}

function ofRecord(record: LogRecord, name: string): string | undefined {
  return record.header(name) ?? (name === 'host' ? record.host : undefined)
}

/** Responses are played in pieces of 64 kB: the largest number of a log would take years. */
const MAX_BYTES = 2 ** 38

/** The client of requests without an address. */
const UNKNOWN = 'unknown'

const byAddress = byIp<LogRecord>()

/** An address that is none counts as it is written. */
function grouped(context: RecordContext, ip: string): string {
  try {
    return String(byAddress(context.request, context))
  } catch {
    return ip
  }
}
