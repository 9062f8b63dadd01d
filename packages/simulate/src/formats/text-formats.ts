import { type LogFormat, mostParse } from './format.js'
import { LinePattern, type PatternPart } from './line-pattern.js'
import { TextLines } from './text-lines.js'

/** A form of lines of text: a sketch in which `{name}` stands for a part, whose names are those of `TextLines`. */
interface TextForm {
  readonly name: string
  /** The field with the client's address, as the server calls it. */
  readonly client: string
  readonly sketch: string
}

const FORMS: readonly TextForm[] = [
  // https://docs.haproxy.org/2.8/configuration.html#8.2.3: captures, if any, are behind the queues.
  {
    name: 'haproxy',
    client: 'client',
    sketch:
      '{client} [{started}] {frontend} {backend}/{server} {request_ms} {status} {bytes_sent} {request_cookie} {response_cookie} {termination} {connections} {queues} {captures}"{request}"…',
  },
  // Before that of Envoy, which would match it: https://istio.io/latest/docs/tasks/observability/logs/access-log/
  {
    name: 'istio',
    client: 'client',
    sketch:
      '[{started}] "{request}" {status} {flags} {details} {termination} "{failure}" {bytes_received} {bytes_sent} {request_ms} {upstream_ms} "{http_x_forwarded_for}" "{http_user_agent}" "{request_id}" "{http_host}" "{upstream}" {cluster} {upstream_local} {local} {client} …',
  },
  // https://www.envoyproxy.io/docs/envoy/latest/configuration/observability/access_log/usage#default-format-string
  {
    name: 'envoy',
    client: 'forwarded_for',
    sketch:
      '[{started}] "{request}" {status} {flags} {bytes_received} {bytes_sent} {request_ms} {upstream_ms} "{forwarded_for}" "{http_user_agent}" "{request_id}" "{http_host}" "{upstream}"…',
  },
  // https://docs.aws.amazon.com/AmazonS3/latest/userguide/LogFormat.html
  {
    name: 's3',
    client: 'remote_addr',
    sketch:
      '{owner} {bucket} [{started}] {remote_addr} {remote_user} {request_id} {operation} {key} "{request}" {status} {error} {bytes_sent} {object_size} {request_ms} {turnaround_ms} "{http_referer}" "{http_user_agent}"…',
  },
  // https://docs.aws.amazon.com/elasticloadbalancing/latest/classic/access-log-collection.html#access-log-entry-syntax
  {
    name: 'elb',
    client: 'client',
    sketch:
      '{started} {elb} {client} {backend} {request_processing_time} {backend_processing_time} {response_processing_time} {status} {backend_status} {received_bytes} {bytes_sent} "{request_url}" "{http_user_agent}" {ssl_cipher} …',
  },
  // http://lists.unbit.it/pipermail/uwsgi/2015-March/007949.html
  {
    name: 'uwsgi',
    client: 'remote_addr',
    sketch:
      '[pid: {pid}|app: {app}|req: {req}] {remote_addr} ({remote_user}) {{vars}} [{started}] {request} => generated {bytes_sent} bytes in {request_ms} msecs ({protocol} {status}) …',
  },
]

/** Servers that log text in forms of their own. */
export const TEXT_FORMATS: readonly LogFormat[] = FORMS.map(formatOfSketch)

function formatOfSketch({ name, client, sketch }: TextForm): LogFormat {
  const isOpen = sketch.endsWith('…')
  // Between two braces is the part of a brace that is text.
  const [prefix = '', ...rest] = sketch.replace(/…$/, '').split(/\{(?=\w)/)
  const parts = rest.map((text): PatternPart => {
    const end = text.indexOf('}')
    return { name: text.slice(0, end), until: text.slice(end + 1) }
  })
  const reader = () => new TextLines(name, new LinePattern(prefix, parts, isOpen))
  const parser = () => reader().parse
  return { name, client, parser, reader, detect: (lines) => mostParse(lines, parser()) }
}
