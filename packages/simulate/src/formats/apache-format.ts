import { quoted } from '@sluice/core/internal'
import { SimulationError } from '../simulation-error.js'
import { type LogFormat, mostParse } from './format.js'
import { LinePattern, type PatternPart } from './line-pattern.js'
import { TextLines } from './text-lines.js'

/** Whether a text is that of a `LogFormat`: it has one of the directives for times. */
export function isApacheFormat(text: string): boolean {
  return /%[<>]?(?:\{[^{}]*\})?[a-zA-Z]/.test(text)
}

/** Directives by the names of nginx: https://httpd.apache.org/docs/2.4/mod/mod_log_config.html#formats */
const NAMES: Readonly<Record<string, string>> = {
  a: 'remote_addr',
  h: 'remote_addr',
  l: 'ident',
  u: 'remote_user',
  r: 'request',
  s: 'status',
  b: 'body_bytes_sent',
  B: 'body_bytes_sent',
  O: 'bytes_sent',
  D: 'request_us',
  T: 'request_time',
  '{s}T': 'request_time',
  '{ms}T': 'request_ms',
  '{us}T': 'request_us',
  '{sec}t': 'started',
  '{msec}t': 'started',
  '{usec}t': 'started',
  v: 'server_name',
  V: 'server_name',
  m: 'request_method',
  U: 'document_uri',
  q: 'args',
}

/**
 * The form of Apache's `LogFormat`: its text, or the whole directive. `%t` is when a request arrived.
 *
 * @throws SimulationError where its lines could not be told apart, or have no time
 */
export function apacheFormat(given: string): LogFormat {
  const text = textOf(given)
    // The query begins with its question mark.
    .replaceAll('%U%q', '%{uri}Q')
    .replaceAll(/%[<>]?t/g, '[%{clf}Q]')
  const parts: PatternPart[] = []
  const [prefix = '', ...rest] = text.split(/(%[!\d,]*[<>]?(?:\{[^{}]*\})?[a-zA-Z])/)
  for (let i = 0; i < rest.length; i += 2) {
    const name = nameOf(rest[i] as string)
    parts.push({ name, until: rest[i + 1] as string, ...(name === 'http_x_forwarded_for' && { isList: true }) })
  }
  parts.forEach(({ name, until }, i) => {
    if (until === '' && i < parts.length - 1) {
      throw new SimulationError(`--format: expected a text behind ${quoted(name)} in ${quoted(text)}`)
    }
  })
  if (!parts.some(({ name }) => name === 'started')) {
    throw new SimulationError(`--format: expected %t, %{sec}t, %{msec}t or %{usec}t in ${quoted(given)}`)
  }
  const reader = () => new TextLines('log_format', new LinePattern(prefix, parts))
  const parser = () => reader().parse
  const client = parts.some(({ name }) => name === 'remote_addr') ? '%h' : undefined
  return { name: 'log_format', client, parser, reader, detect: (lines) => mostParse(lines, parser()) }
}

function nameOf(directive: string): string {
  const [, argument = '', letter = ''] = /^%[!\d,]*[<>]?(\{[^{}]*\})?(.)$/.exec(directive) ?? []
  if (argument === '{clf}' && letter === 'Q') return 'started'
  if (argument === '{uri}' && letter === 'Q') return 'request_uri'
  if (letter === 'i') return `http_${argument.slice(1, -1).toLowerCase().replaceAll('-', '_')}`
  return NAMES[argument + letter] ?? (letter === 'a' ? 'peer' : `%${argument}${letter}`)
}

/** `LogFormat "…" nickname`, or what is in the quotes. */
function textOf(given: string): string {
  const [, inQuotes] = /^\s*(?:LogFormat|CustomLog \S+)\s+"((?:[^"\\]|\\.)*)"/.exec(given) ?? []
  return inQuotes === undefined ? given : inQuotes.replace(/\\(.)/g, '$1')
}
