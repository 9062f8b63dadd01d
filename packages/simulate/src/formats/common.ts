import { isIP } from 'node:net'
import { type LogFormat, mostParse } from './format.js'
import { LinePattern, type PatternPart } from './line-pattern.js'
import { TextLines } from './text-lines.js'

const VHOST: readonly PatternPart[] = [{ name: 'vhost', until: ' ' }]
const COMMON: readonly PatternPart[] = [
  { name: 'remote_addr', until: ' ' },
  { name: 'ident', until: ' ' },
  { name: 'remote_user', until: ' [' },
  { name: 'time_local', until: '] "' },
  { name: 'request', until: '" ' },
  { name: 'status', until: ' ' },
]
const REFERER_AND_AGENT: readonly PatternPart[] = [
  { name: 'body_bytes_sent', until: ' "' },
  { name: 'http_referer', until: '" "' },
]

/** The forms that Apache and nginx write by default, the most specific first. */
export const COMMON_FORMATS: readonly LogFormat[] = [
  textFormat('main', [
    ...COMMON,
    ...REFERER_AND_AGENT,
    { name: 'http_user_agent', until: '" "' },
    { name: 'http_x_forwarded_for', until: '"' },
  ]),
  withVhost('vhost_combined', [...COMMON, ...REFERER_AND_AGENT, { name: 'http_user_agent', until: '"' }]),
  // Many add parts of their own behind the agent.
  textFormat('combined', [...COMMON, ...REFERER_AND_AGENT, { name: 'http_user_agent', until: '"' }], true),
  withVhost('vhost_common', [...COMMON, { name: 'body_bytes_sent', until: ' ', mayEnd: true }]),
  textFormat('common', [...COMMON, { name: 'body_bytes_sent', until: ' ', mayEnd: true }], true),
]

function textFormat(name: string, parts: readonly PatternPart[], isOpen = false): LogFormat {
  const reader = () => new TextLines(name, new LinePattern('', parts, isOpen))
  const parser = () => reader().parse
  return { name, client: 'remote_addr', parser, reader, detect: (lines) => mostParse(lines, parser()) }
}

/**
 * Hosts and addresses have no form that tells them apart: the second part must be an address, the first none, nor one of a list
 * of proxies, `192.0.2.7, 10.0.0.1`.
 */
function withVhost(name: string, parts: readonly PatternPart[]): LogFormat {
  const format = textFormat(name, [...VHOST, ...parts], true)
  const parse = format.parser()
  const parseSuch = (line: string) => {
    const [host = '', address = ''] = line.split(' ', 2)
    return isIP(host) === 0 && !host.endsWith(',') && isIP(address) !== 0 ? parse(line) : undefined
  }
  return { ...format, detect: (lines) => mostParse(lines, parseSuch) }
}
