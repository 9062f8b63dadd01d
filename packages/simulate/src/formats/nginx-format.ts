import { quoted } from '@sluice/core/internal'
import { SimulationError } from '../simulation-error.js'
import { type LogFormat, mostParse } from './format.js'
import { LinePattern, type PatternPart } from './line-pattern.js'
import { TextLines } from './text-lines.js'
import { unescaped } from './texts.js'
import { CLF_LENGTH } from './times.js'

const TIMES = ['time_local', 'time_iso8601', 'msec']
const LENGTHS: Readonly<Record<string, number>> = { time_local: CLF_LENGTH, time_iso8601: 25 }
/** Several servers or proxies, told apart by commas and colons with spaces. */
const LIST = /^(?:upstream_|http_x_forwarded_for$|proxy_add_x_forwarded_for$)/

/**
 * The form of nginx's `log_format`: its text, or the whole directive.
 *
 * @throws SimulationError where its lines could not be told apart, or have no time
 */
export function nginxFormat(given: string, name = 'log_format'): LogFormat {
  const { text, escaping } = directive(given)
  // What nginx writes between a path and its query, or nothing.
  const [prefix = '', ...rest] = text
    .replaceAll(/\$(?:document_)?uri\$is_args\$(?:args|query_string)/g, '$$request_uri')
    .split('$')
  const parts = rest.map(partOf)
  parts.forEach((part, i) => {
    const next = parts[i + 1]
    if (part.until === '' && next) {
      throw new SimulationError(`--format: expected a text between $${part.name} and $${next.name}`)
    }
  })
  if (!parts.some(({ name }) => TIMES.includes(name))) {
    throw new SimulationError(
      `--format: expected one of ${TIMES.map((name) => `$${name}`).join(', ')} in ${quoted(text)}`,
    )
  }
  const reader = () => new TextLines(name, new LinePattern(prefix, parts), DECODERS[escaping])
  const parser = () => reader().parse
  const client = parts.some(({ name }) => name === 'remote_addr') ? 'remote_addr' : undefined
  return { name, client, parser, reader, detect: (lines) => mostParse(lines, parser()) }
}

function partOf(text: string): PatternPart {
  const [, braced, plain, until = ''] = /^(?:\{(\w+)\}|(\w+))(.*)$/s.exec(text) ?? []
  const name = braced ?? plain
  if (name === undefined)
    throw new SimulationError(`--format: expected a variable's name behind $, got ${quoted(text)}`)
  const length = LENGTHS[name]
  return { name, until, ...(length !== undefined && { length }), ...(LIST.test(name) && { isList: true }) }
}

const DECODERS = { default: unescaped, json: jsonDecoded, none: (text: string) => text }

/** `log_format main escape=json '…' '…';` or what is in the quotes, in one or several pieces. */
function directive(given: string): { readonly text: string; readonly escaping: keyof typeof DECODERS } {
  const line = given.trimStart()
  const [head = '', escaping] = /^(?:log_format\s+\S+\s+)?(?:escape=(default|json|none)\s+)?/.exec(line) ?? []
  const ended = line.slice(head.length).trimEnd()
  const rest = ended.endsWith(';') ? ended.slice(0, -1).trimEnd() : ended
  const pieces = /^(?:(?:'[^']*'|"[^"]*")\s*)+$/.test(rest) ? rest.match(/'[^']*'|"[^"]*"/g) : undefined
  const text = pieces ? pieces.map((piece) => piece.slice(1, -1)).join('') : rest
  const isJson = text.trimStart().startsWith('{"')
  return { text, escaping: (escaping as keyof typeof DECODERS | undefined) ?? (isJson ? 'json' : 'default') }
}

function jsonDecoded(text: string): string {
  if (!text.includes('\\')) return text
  try {
    return JSON.parse(`"${text}"`)
  } catch {
    return text
  }
}
