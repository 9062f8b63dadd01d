import { type LogFormat, mostParse, type ParseLine, WrongLog } from './format.js'
import { endedAt, type LineReader } from './parsed-line.js'
import { epochTime, type Instant, isoTime } from './times.js'

/** A form of the extended format of the W3C, whose header names the fields: https://www.w3.org/TR/WD-logfile.html */
interface W3cForm {
  readonly name: string
  readonly separator: string
  /** How many ms the unit of `time-taken` has, by the lines before the first request. */
  durationUnitMs(software: string): number
}

const FORMS: readonly W3cForm[] = [
  // https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/standard-logs-reference.html
  { name: 'cloudfront', separator: '\t', durationUnitMs: () => 1000 },
  // https://learn.microsoft.com/en-us/windows/win32/http/w3c-logging: of IIS in ms, of others in seconds.
  { name: 'w3c', separator: ' ', durationUnitMs: (software) => (software.includes('Microsoft') ? 1 : 1000) },
]

/** CloudFront, IIS, and others that log as the W3C has it. */
export const W3C_FORMATS: readonly LogFormat[] = FORMS.map((form) => {
  const format: LogFormat = {
    name: form.name,
    client: 'c-ip',
    detect(lines) {
      const head = lines.findIndex((line) => line.startsWith(HEADER))
      const first = lines.slice(head + 1).find((line) => !line.startsWith('#'))
      if (head < 0 || (first !== undefined && !first.includes(form.separator))) return false
      if (form.separator === ' ') checkFields(lines[head] as string)
      return mostParse(lines, format.parser())
    },
    parser: () => parserOf(form),
    reader: (head) => new W3cLines(form, head, ''),
  }
  return format
})

const HEADER = '#Fields:'
const SOFTWARE = '#Software:'
/** What a replay needs. */
const NEEDED = ['date', 'time', 'cs-method']

function parserOf(form: W3cForm): ParseLine {
  let lines: W3cLines | undefined
  let software = ''
  return (line) => {
    if (line.startsWith(SOFTWARE)) software = line
    if (line.startsWith(HEADER)) lines = new W3cLines(form, line, software)
    return line.startsWith('#') ? null : lines?.parse(line)
  }
}

/** @throws WrongLog where fields are missing that the server can be told to write */
function checkFields(head: string): void {
  const fields = head.slice(HEADER.length).trim().split(/\s+/)
  if (NEEDED.every((name) => fields.includes(name))) return
  throw new WrongLog(
    `has no requests: #Fields: expected ${NEEDED.join(', ')} and cs-uri-stem or cs-uri among ${fields.join(' ')}`,
  )
}

class W3cLines implements LineReader {
  readonly format: string
  readonly head: string
  readonly #separator: string
  readonly #durationUnitMs: number
  readonly #names: readonly string[]

  constructor({ name, separator, durationUnitMs }: W3cForm, head: string, software: string) {
    this.format = name
    this.head = head
    this.#separator = separator
    this.#durationUnitMs = durationUnitMs(software)
    this.#names = head.slice(HEADER.length).trim().split(/\s+/)
  }

  readonly parse: ParseLine = (line) => {
    const values = line.split(this.#separator)
    // Some lines end in a tab.
    if (values.length < this.#names.length) return undefined
    const instant = this.#instant(values)
    if (!instant) return undefined
    const taken = Number(this.#value(values, 'time-taken') ?? Number.NaN) * this.#durationUnitMs
    const durationMs = taken >= 0 ? taken : undefined
    const record = endedAt(instant, durationMs, line, this)
    if (!record) return undefined
    record.ip = this.#value(values, 'c-ip')
    record.method = this.#value(values, 'cs-method')
    // 000 for a client that left.
    record.status = Number(this.#value(values, 'sc-status') ?? 0) || undefined
    if (this.#names.includes('sc-bytes')) record.bytes = Number(this.#value(values, 'sc-bytes') ?? 0) || 0
    record.user = this.#value(values, 'cs-username')
    record.host = HOSTS.map((name) => this.#value(values, name)).find((host) => host !== undefined)
    const query = this.#value(values, 'cs-uri-query')
    const stem = this.#value(values, 'cs-uri-stem')
    record.target =
      stem === undefined ? this.#value(values, 'cs-uri') : `${stem}${query === undefined ? '' : `?${query}`}`
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
    if (text === undefined) return undefined
    // IIS writes spaces as plus signs.
    return this.#separator === ' ' ? text.replaceAll('+', ' ') : decoded(decoded(text))
  }

  field(line: string, path: string): string | undefined {
    return this.#value(line.split(this.#separator), path)
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

/** Fields with the host, as servers call them. */
const HOSTS = ['x-host-header', 'cs(Host)', 'cs-host']

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
