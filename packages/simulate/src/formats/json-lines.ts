import { addressIn } from '@sluice/core/internal'
import type { LogFormat } from './format.js'
import { mostParse } from './format.js'
import { type Json, objectOf, textAt, textOf, valueAt } from './json.js'
import { begunAt, endedAt, type LineReader, type ParsedLine } from './parsed-line.js'
import { epochTime, type Instant, instantOf } from './times.js'

/** Where a form of JSON has what a record is made of, by paths such as `.request.method`. */
export interface JsonFields {
  /** When the line was written, at the request's end. */
  readonly time?: string
  /** When the request began. */
  readonly start?: string
  readonly duration?: string
  /** How many ms the unit of the duration has. @default 1000 */
  readonly durationUnitMs?: number
  readonly ip?: string
  /** In place of `ip` where it is known, as the server takes it from a proxy that it trusts. */
  readonly clientIp?: string
  readonly method?: string
  readonly target?: string
  readonly status?: string
  readonly bytes?: string
  readonly user?: string
  readonly agent?: string
  readonly host?: string
  /** An object of headers by name. */
  readonly headers?: string
  /** Headers beside the other fields, behind this in their names. */
  readonly headerPrefix?: string
  /** Lines without it are no requests, such as what the application logs beside them. */
  readonly mark?: string
  /** The same of another field. */
  readonly alsoMark?: string
}

/** Lines of JSON objects. Recognised by its mark. */
export function jsonFormat(name: string, fields: JsonFields): LogFormat {
  const reader = () => new JsonLines(name, fields)
  const parser = () => reader().parse
  return { name, client: fields.ip, parser, reader, detect: (lines) => mostParse(lines, parser()) }
}

class JsonLines implements LineReader {
  readonly format: string
  readonly head = ''
  readonly #fields: JsonFields
  /** The finest that was seen: JSON has no decimals of zero, and some leave them out of texts. */
  #resolutionMs = 1000

  constructor(format: string, fields: JsonFields) {
    this.format = format
    this.#fields = fields
  }

  readonly parse = (line: string): ParsedLine | null | undefined => {
    const json = objectOf(line)
    if (json === undefined) return undefined
    const { mark, alsoMark, start, time, duration, durationUnitMs = 1000 } = this.#fields
    if ([mark, alsoMark].some((path) => path !== undefined && valueAt(json, path) === undefined)) return null
    const instant = start === undefined ? undefined : instantAt(json, start)
    const end = time === undefined ? undefined : instantAt(json, time)
    const at = instant ?? end
    if (at === undefined) return undefined
    this.#resolutionMs = Math.min(this.#resolutionMs, at.resolutionMs)
    const taken = duration === undefined ? undefined : durationOf(valueAt(json, duration), durationUnitMs)
    const durationMs = taken ?? (instant && end ? between(instant, end) : undefined)
    const begunOrEnded = { ms: at.ms, resolutionMs: this.#resolutionMs }
    const record = (instant ? begunAt : endedAt)(begunOrEnded, durationMs, line, this)
    if (!record) return undefined
    this.#fill(record, json)
    return record
  }

  agent(line: string): string | undefined {
    const { agent } = this.#fields
    return agent === undefined ? this.header(line, 'user-agent') : this.field(line, agent)
  }

  header(line: string, name: string): string | undefined {
    const json = objectOf(line)
    return json && this.#header(json, name)
  }

  field(line: string, path: string): string | undefined {
    const json = objectOf(line)
    return json && textAt(json, path)
  }

  #fill(record: ParsedLine, json: Json): void {
    const { ip, clientIp, method, target, status, bytes, user, host } = this.#fields
    const address = textAt(json, clientIp) ?? textAt(json, ip)
    record.ip = address && (addressIn(address) ?? address)
    const request = textAt(json, target)
    const [, verb, path = request] = REQUEST_LINE.exec(request ?? '') ?? []
    record.method = textAt(json, method) ?? verb
    record.target = path
    // 0 for a request that was aborted.
    record.status = numberAt(json, status) || undefined
    record.bytes = numberAt(json, bytes)
    record.user = textAt(json, user)
    record.host = host === undefined ? this.#header(json, 'host') : textAt(json, host)
  }

  #header(json: Json, name: string): string | undefined {
    const { headers, headerPrefix = '' } = this.#fields
    const all = headers === undefined ? json : valueAt(json, headers)
    if (headers === undefined && headerPrefix === '') return undefined
    if (typeof all !== 'object' || all === null) return undefined
    const wanted = (headerPrefix + name).toLowerCase()
    const key = Object.keys(all).find((key) => key.toLowerCase() === wanted)
    return key === undefined ? undefined : textOf((all as Json)[key])
  }
}

/** `GET /path HTTP/1.1`, as nginx and Apache write a request in one field. */
const REQUEST_LINE = /^([A-Za-z]+) (\S.*) HTTP\/[\d.]+$/

function numberAt(json: Json, path: string | undefined): number | undefined {
  const text = textAt(json, path)
  const number = Number(text)
  return text !== undefined && number >= 0 ? number : undefined
}

function instantAt(json: Json, path: string): Instant | undefined {
  const value = valueAt(json, path)
  return typeof value === 'number' ? epochTime(value) : typeof value === 'string' ? instantOf(value) : undefined
}

/** The time from a start to an end. Undefined where the clock is too coarse to tell. */
function between(start: Instant, end: Instant): number | undefined {
  return start.resolutionMs <= 1 && end.resolutionMs <= 1 && end.ms >= start.ms ? end.ms - start.ms : undefined
}

const UNITS_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
}

/** In ms, of a number or of a text such as `1.5s` or `1m2s`. */
function durationOf(value: unknown, unitMs: number): number | undefined {
  const number = typeof value === 'string' && value !== '' ? Number(value) : value
  const ms = typeof number === 'number' && !Number.isNaN(number) ? number * unitMs : durationIn(value)
  return ms !== undefined && ms >= 0 ? ms : undefined
}

function durationIn(value: unknown): number | undefined {
  if (typeof value !== 'string' || !/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/.test(value)) return undefined
  let ms = 0
  for (const [, number, unit] of value.matchAll(/([\d.]+)([a-zµ]+)/gy))
    ms += Number(number) * (UNITS_MS[unit as string] as number)
  return ms
}
