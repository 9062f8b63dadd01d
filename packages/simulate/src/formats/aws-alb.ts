import { type LogFormat, mostParse } from './format.js'
import { LinePattern, type PatternPart } from './line-pattern.js'
import { begunAt, type LineReader, type ParsedLine } from './parsed-line.js'
import { unescaped } from './texts.js'
import { isoTime } from './times.js'

// https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-access-logs.html#access-log-entry-syntax
const PARTS: readonly PatternPart[] = [
  ...spaced('type time elb client target request_processing_time target_processing_time response_processing_time'),
  ...spaced('elb_status_code target_status_code received_bytes'),
  { name: 'sent_bytes', until: ' "' },
  { name: 'request', until: '" "' },
  { name: 'user_agent', until: '" ' },
  ...spaced('ssl_cipher ssl_protocol'),
  { name: 'target_group_arn', until: ' "' },
  { name: 'trace_id', until: '" "' },
  { name: 'domain_name', until: '" "' },
  { name: 'chosen_cert_arn', until: '" ' },
  { name: 'matched_rule_priority', until: ' ' },
  { name: 'request_creation_time', until: ' "' },
]

function spaced(names: string): readonly PatternPart[] {
  return names.split(' ').map((name) => ({ name, until: ' ' }))
}

/** Access logs of Amazon's Application Load Balancer. */
export const AWS_ALB: LogFormat = {
  name: 'aws-alb',
  client: 'client',
  detect: (lines) => mostParse(lines, AWS_ALB.parser()),
  parser: () => new AlbLines().parse,
  reader: () => new AlbLines(),
}

class AlbLines implements LineReader {
  readonly format = 'aws-alb'
  readonly head = ''
  readonly #pattern = new LinePattern('', PARTS, true)

  readonly parse = (line: string): ParsedLine | undefined => {
    if (!this.#pattern.matches(line)) return undefined
    const created = isoTime(this.#part(line, 'request_creation_time') ?? '')
    const ended = isoTime(this.#part(line, 'time') ?? '')
    if (!created || !ended) return undefined
    const durationMs = Math.max(0, ended.ms - created.ms)
    const record = begunAt(created, durationMs, line, this)
    if (!record) return undefined
    record.ip = this.#part(line, 'client')
      ?.replace(/:\d+$/, '')
      .replace(/^\[|\]$/g, '')
    record.status = Number(this.#part(line, 'elb_status_code') ?? 0) || undefined
    record.bytes = Number(this.#part(line, 'sent_bytes') ?? 0) || 0
    const [, method, host, target] = REQUEST.exec(this.#part(line, 'request') ?? '') ?? []
    record.method = method
    record.host = host
    record.target = target === '' ? '/' : target
    return record
  }

  agent(line: string): string | undefined {
    return this.field(line, 'user_agent')
  }

  header(line: string, name: string): string | undefined {
    if (name === 'user-agent') return this.agent(line)
    return name === 'host' ? this.parse(line)?.host : undefined
  }

  field(line: string, path: string): string | undefined {
    return this.#pattern.matches(line) ? this.#part(line, path) : undefined
  }

  /** A part of the line that matched. */
  #part(line: string, name: string): string | undefined {
    const index = this.#pattern.names.indexOf(name)
    const text = index < 0 ? '-' : line.slice(this.#pattern.starts[index], this.#pattern.ends[index])
    return text === '-' || text === '' ? undefined : unescaped(text)
  }
}

/** `GET https://www.example.com:443/path?query HTTP/1.1`. */
const REQUEST = /^([A-Z]+) [a-z]+:\/\/([^/?]*?)(?::\d+)?([/?].*)? HTTP\/[\d.]+$/
