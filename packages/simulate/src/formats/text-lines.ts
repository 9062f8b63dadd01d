import { addressIn } from '@sluice/core/internal'
import type { LinePattern } from './line-pattern.js'
import { begunAt, endedAt, type LineReader, type ParsedLine } from './parsed-line.js'
import { copied, unescaped, wholeNumber } from './texts.js'
import { ClfClock, instantOf, isoTime, secondsText } from './times.js'

/** Reads lines of a pattern whose parts are called as nginx calls its variables. */
export class TextLines implements LineReader {
  readonly format: string
  readonly head = ''
  readonly #pattern: LinePattern
  readonly #decode: (text: string) => string
  readonly #at: ReturnType<typeof placesIn>
  readonly #clock = new ClfClock()

  constructor(format: string, pattern: LinePattern, decode = unescaped) {
    this.format = format
    this.#pattern = pattern
    this.#decode = decode
    this.#at = placesIn(pattern.names)
  }

  readonly parse = (line: string): ParsedLine | null | undefined => {
    if (!this.#pattern.matches(line)) return undefined
    const at = this.#at
    const status = at.status < 0 ? undefined : this.#number(line, at.status)
    if (status === undefined && (this.#text(line, at.status) ?? NO_STATUS) !== NO_STATUS) return undefined
    const record = this.#timed(line)
    if (record === undefined) return undefined

    const address = this.#address(line)
    if (address !== undefined) record.ip = copied(address)
    if (status !== undefined && status > 0) record.status = status
    if (at.bytes >= 0) {
      const bytes = this.#number(line, at.bytes)
      if (bytes === undefined && this.#text(line, at.bytes) !== undefined) return undefined
      // Apache writes 0 as "-".
      record.bytes = bytes ?? 0
    }
    record.user = this.#decoded(line, at.user)
    record.host = this.#decoded(line, at.host) ?? withoutPort(this.#text(line, at.vhost))
    if (at.request >= 0 && !readRequest(record, line, this.#start(at.request), this.#end(at.request), this.#decode))
      return null
    if (at.url >= 0 && !readUrl(record, line.slice(this.#start(at.url), this.#end(at.url)), this.#decode)) return null
    if (at.method >= 0) record.method = this.#text(line, at.method)
    if (at.target >= 0) record.target = this.#decoded(line, at.target)
    else if (at.path >= 0) record.target = joined(this.#decoded(line, at.path), this.#decoded(line, at.query))
    return record
  }

  agent(line: string): string | undefined {
    return this.field(line, 'http_user_agent')
  }

  header(line: string, name: string): string | undefined {
    return this.field(line, `http_${name.replaceAll('-', '_')}`)
  }

  field(line: string, path: string): string | undefined {
    const text = this.#pattern.part(line, path)
    return text === undefined || isAbsent(text) ? undefined : this.#decode(text)
  }

  /** The record of a line's time and duration. Undefined if they are none. */
  #timed(line: string): ParsedLine | undefined {
    const { clf, iso, epoch, started } = this.#at
    const durationMs = this.#durationMs(line)
    if (started >= 0) {
      const instant = instantOf(this.#text(line, started) ?? '')
      return instant && begunAt(instant, durationMs, line, this)
    }
    if (epoch < 0 && iso < 0) {
      const endMs = this.#clock.at(line, this.#start(clf), this.#end(clf))
      return Number.isNaN(endMs) ? undefined : endedAt({ ms: endMs, resolutionMs: 1000 }, durationMs, line, this)
    }
    const instant = epoch >= 0 ? secondsText(this.#text(line, epoch) ?? '') : isoTime(this.#text(line, iso) ?? '')
    return instant && endedAt(instant, durationMs, line, this)
  }

  /** The sum of all parts that are durations. Undefined if one of them is not known. */
  #durationMs(line: string): number | undefined {
    const { durations } = this.#at
    let sum: number | undefined
    for (const [place, unitMs] of durations) {
      const text = this.#text(line, place)
      // HAProxy has several times between slashes, the last of which is the whole.
      const ms = Number(text === undefined ? Number.NaN : text.slice(text.lastIndexOf('/') + 1)) * unitMs
      if (!(ms >= 0)) return undefined
      sum = (sum ?? 0) + ms
    }
    return sum
  }

  /** The address of the client, without its port. Of a list of proxies the last one, which the server has seen itself. */
  #address(line: string): string | undefined {
    const { ip, withPort, list } = this.#at
    if (ip >= 0) return this.#text(line, ip)
    const text = withPort >= 0 ? this.#text(line, withPort) : this.#text(line, list)
    if (text === undefined) return undefined
    const last = withPort >= 0 ? text : text.slice(text.lastIndexOf(',') + 1).trim()
    // HAProxy writes IPv6 without brackets.
    return addressIn(last) ?? addressIn(last.replace(/:\d+$/, '')) ?? last
  }

  #start(place: number): number {
    return this.#pattern.starts[place] as number
  }

  #end(place: number): number {
    return this.#pattern.ends[place] as number
  }

  #number(line: string, place: number): number | undefined {
    return wholeNumber(line, this.#start(place), this.#end(place))
  }

  /** A part as written. Undefined if the log has none. */
  #text(line: string, place: number): string | undefined {
    if (place < 0) return undefined
    const start = this.#start(place)
    const end = this.#end(place)
    if (end === start || (end === start + 1 && line.charCodeAt(start) === DASH)) return undefined
    return line.slice(start, end)
  }

  #decoded(line: string, place: number): string | undefined {
    const text = this.#text(line, place)
    return text === undefined ? undefined : this.#decode(text)
  }
}

const DASH = 45

function isAbsent(text: string): boolean {
  return text === '' || text === '-'
}

/** In place of a status, as HAProxy writes it. */
const NO_STATUS = '-1'

/** The parts that are durations, and how many ms their units have. */
const DURATIONS_MS: Readonly<Record<string, number>> = {
  request_time: 1000,
  request_ms: 1,
  request_us: 1e-3,
  request_processing_time: 1000,
  backend_processing_time: 1000,
  response_processing_time: 1000,
}

/** Where the parts are that a record is made of: -1 for those that the pattern lacks. */
function placesIn(names: readonly string[]) {
  const place = (...candidates: readonly string[]) =>
    candidates.map((name) => names.indexOf(name)).find((index) => index >= 0) ?? -1
  return {
    clf: place('time_local'),
    iso: place('time_iso8601'),
    epoch: place('msec'),
    started: place('started'),
    durations: Object.entries(DURATIONS_MS).flatMap(([name, unitMs]) => {
      const index = names.indexOf(name)
      return index < 0 ? [] : [[index, unitMs] as const]
    }),
    ip: place('remote_addr'),
    withPort: place('client'),
    list: place('forwarded_for'),
    user: place('remote_user'),
    request: place('request'),
    url: place('request_url'),
    method: place('request_method'),
    target: place('request_uri'),
    path: place('uri', 'document_uri'),
    query: place('args', 'query_string'),
    status: place('status'),
    bytes: place('bytes_sent', 'body_bytes_sent'),
    host: place('http_host', 'host', 'server_name'),
    vhost: place('vhost'),
  }
}

/**
 * Reads `GET /path HTTP/1.1`. False for what is no request, which no application sees: a connection that ended before it, or a
 * TLS handshake sent to an HTTP port.
 */
function readRequest(
  record: ParsedLine,
  line: string,
  start: number,
  end: number,
  decode: (text: string) => string,
): boolean {
  const space = line.indexOf(' ', start)
  if (space <= start || space >= end) return false
  const protocol = line.lastIndexOf(' ', end - 1)
  const isWithProtocol = protocol > space && line.startsWith('HTTP/', protocol + 1)
  const method = line.startsWith('GET ', start) ? 'GET' : line.slice(start, space)
  if (method !== 'GET' && !METHOD.test(method)) return false
  if (!isWithProtocol && line.charCodeAt(space + 1) !== SLASH) return false
  record.method = method
  record.target = decode(line.slice(space + 1, isWithProtocol ? protocol : end))
  return true
}

/** Reads `GET https://www.example.com:443/path HTTP/1.1`. False for what is no request of HTTP. */
function readUrl(record: ParsedLine, text: string, decode: (text: string) => string): boolean {
  const [, method, host, target] = URL_REQUEST.exec(text) ?? []
  if (method === undefined) return false
  record.method = method
  record.host = host
  record.target = target === undefined ? '/' : decode(target)
  return true
}

const URL_REQUEST = /^([A-Z]+) [a-z]+:\/\/([^/?: ]*)(?::\d+)?([/?].*)? HTTP\/[\d.]+$/

const METHOD = /^[A-Za-z][A-Za-z_-]*$/
const SLASH = 47

function joined(path: string | undefined, query: string | undefined): string | undefined {
  return query === undefined ? path : `${path ?? ''}?${query}`
}

function withoutPort(host: string | undefined): string | undefined {
  return host?.replace(/:\d+$/, '')
}
