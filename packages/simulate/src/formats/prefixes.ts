import { addressIn } from '@sluice/core/internal'
import type { LogFormat, ParseLine } from './format.js'
import { objectOf } from './json.js'

/** What collectors of logs write before each line, or around it. */
interface Prefix {
  /** As reports name it. */
  readonly name: string
  /** A line without it. The line itself where it lacks it. */
  readonly strip: (line: string) => string
}

const DATE_AND_TIME = '\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\S*'

const PREFIXES: readonly Prefix[] = [
  // https://docs.docker.com/engine/logging/drivers/json-file/
  { name: 'Docker json-file', strip: fromDocker },
  // https://datatracker.ietf.org/doc/html/rfc5424#section-6
  behind('syslog', String.raw`<\d{1,3}>1 \S+ \S+ \S+ \S+ \S+ (?:-|(?:\[(?:[^\]\\]|\\.)*\])+) (?:\uFEFF)?`),
  // https://datatracker.ietf.org/doc/html/rfc3164#section-4.1, and with the times that rsyslog and journalctl write in place of its own.
  behind(
    'syslog',
    String.raw`(?:<\d{1,3}>)?(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|${DATE_AND_TIME}) (?:\S+ )?[\w./-]+(?:\[\d+\])?: `,
  ),
  // https://github.com/kubernetes/design-proposals-archive/blob/main/node/kubelet-cri-logging.md
  behind('CRI', String.raw`${DATE_AND_TIME} std(?:out|err) [FP](?::\S*)? `),
  behind('Docker Compose', String.raw`[\w.-]+ +\| `),
  // `kubectl logs --prefix`
  behind('kubectl', String.raw`\[pod/\S+/\S+\] `),
  // `docker logs -t` and `kubectl logs --timestamps`
  behind('a time', `${DATE_AND_TIME} `),
  { name: 'quotes', strip: unquoted },
]

function behind(name: string, text: string): Prefix {
  const pattern = new RegExp(`^${text}`)
  return {
    name,
    strip(line) {
      const [found = ''] = pattern.exec(line) ?? []
      return found === '' ? line : line.slice(found.length)
    },
  }
}

function fromDocker(line: string): string {
  if (!line.startsWith('{"log":"')) return line
  const log = objectOf(line)?.log
  return typeof log === 'string' ? log.replace(/\r?\n$/, '') : line
}

/** Quotes within may be escaped as those of JSON or CSV are. */
function unquoted(line: string): string {
  const quote = line[0]
  if ((quote !== '"' && quote !== "'") || line.length < 2 || !line.endsWith(quote)) return line
  const text = line.slice(1, -1)
  if (quote === "'") return text
  if (text.includes('] \\"')) return text.replace(/\\(["\\])/g, '$1')
  return text.includes('] ""') ? text.replaceAll('""', '"') : text
}

/** Prefixes may stand before one another, as that of Docker Compose before a time. */
const MAX_PREFIXES = 3

/** The prefixes that most of these lines have, the first one first. */
function prefixesOf(lines: readonly string[]): readonly Prefix[] {
  const found: Prefix[] = []
  for (let rest = lines; found.length < MAX_PREFIXES; ) {
    const of = PREFIXES.find(({ strip }) => rest.filter((line) => strip(line) !== line).length > rest.length / 2)
    if (!of) break
    found.push(of)
    rest = rest.map(of.strip)
  }
  return found
}

/**
 * The first of these forms that lines are of, behind known prefixes where the lines without them tell the addresses of clients.
 * Undefined where they are of none.
 */
export function detected(formats: readonly LogFormat[], lines: readonly string[]): LogFormat | undefined {
  const plain = formats.find((format) => format.detect(lines))
  const prefixes = prefixesOf(lines)
  if (prefixes.length === 0) return plain
  const strip = (line: string) => prefixes.reduce((text, prefix) => prefix.strip(text), line)
  const stripped = lines.map(strip)
  const format = formats.find((format) => format.detect(stripped))
  return format && (!plain || tellsAddresses(format, stripped)) ? withoutPrefixes(format, prefixes, strip) : plain
}

/** Whether most requests have the address of a client. */
function tellsAddresses(format: LogFormat, lines: readonly string[]): boolean {
  const parse = format.parser()
  let difference = 0
  for (const line of lines) {
    const record = parse(line)
    if (record) difference += record.ip !== undefined && addressIn(record.ip) !== undefined ? 1 : -1
  }
  return difference > 0
}

function withoutPrefixes(format: LogFormat, prefixes: readonly Prefix[], strip: (line: string) => string): LogFormat {
  return {
    ...format,
    name: `${format.name} behind ${prefixes.map(({ name }) => name).join(' and ')}`,
    parser(): ParseLine {
      const parse = format.parser()
      return Object.assign((line: string) => parse(strip(line)), { caveat: parse.caveat })
    },
  }
}
