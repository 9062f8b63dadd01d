import { type LogFormat, mostParse, type ParseLine } from './format.js'
import { endedAt, type LineReader } from './parsed-line.js'
import { epochTime, type Instant, isoTime } from './times.js'

/**
 * Access logs of Amazon CloudFront, whose header names the fields:
 * https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
 */
export const CLOUDFRONT: LogFormat = {
  name: 'cloudfront',
  client: 'c-ip',
  detect: (lines) => lines.some((line) => line.startsWith(HEADER)) && mostParse(lines, CLOUDFRONT.parser()),
  parser: () => {
    let lines: CloudFrontLines | undefined
    return (line) => {
      if (line.startsWith(HEADER)) lines = new CloudFrontLines(line)
      return line.startsWith('#') ? null : lines?.parse(line)
    }
  },
  reader: (head) => new CloudFrontLines(head),
}

const HEADER = '#Fields:'

class CloudFrontLines implements LineReader {
  readonly format = 'cloudfront'
  readonly head: string
  readonly #names: readonly string[]

  constructor(head: string) {
    this.head = head
    this.#names = head.slice(HEADER.length).trim().split(/\s+/)
  }

  readonly parse: ParseLine = (line) => {
    const values = line.split('\t')
    // Some lines end in a tab.
    if (values.length < this.#names.length) return undefined
    const instant = this.#instant(values)
    if (!instant) return undefined
    const taken = Number(this.#value(values, 'time-taken') ?? Number.NaN) * 1000
    const durationMs = taken >= 0 ? taken : undefined
    const record = endedAt(instant, durationMs, line, this)
    if (!record) return undefined
    record.ip = this.#value(values, 'c-ip')
    record.method = this.#value(values, 'cs-method')
    // 000 for a client that left.
    record.status = Number(this.#value(values, 'sc-status') ?? 0) || undefined
    record.bytes = Number(this.#value(values, 'sc-bytes') ?? 0) || 0
    record.host = this.#value(values, 'x-host-header') ?? this.#value(values, 'cs(Host)')
    const query = this.#value(values, 'cs-uri-query')
    record.target = `${this.#value(values, 'cs-uri-stem') ?? '/'}${query === undefined ? '' : `?${query}`}`
    return record
  }

  agent(line: string): string | undefined {
    return this.header(line, 'user-agent')
  }

  header(line: string, name: string): string | undefined {
    if (name === 'host' || name === 'x-forwarded-for') return this.field(line, name === 'host' ? 'x-host-header' : name)
    const field = this.#names.find((each) => each.toLowerCase() === `cs(${name})`)
    const text = field === undefined ? undefined : this.field(line, field)
    // Older lines are encoded twice.
    return text === undefined ? undefined : decoded(decoded(text))
  }

  field(line: string, path: string): string | undefined {
    return this.#value(line.split('\t'), path)
  }

  #instant(values: readonly string[]): Instant | undefined {
    const epoch = this.#value(values, 'timestamp(ms)') ?? this.#value(values, 'timestamp')
    if (epoch !== undefined) return epochTime(Number(epoch))
    return isoTime(`${this.#value(values, 'date')}T${this.#value(values, 'time')}`)
  }

  #value(values: readonly string[], name: string): string | undefined {
    const value = values[this.#names.indexOf(name)]
    return value === '-' || value === '' ? undefined : value
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
