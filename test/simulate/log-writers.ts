import { clfDate } from '../../bench/lib/log-lines.js'

/** A request that a server logs, with texts by a client. */
export interface Logged {
  readonly endMs: number
  readonly durationMs: number
  readonly ip: string
  readonly method: string
  readonly target: string
  readonly status: number
  readonly bytes: number
  readonly agent: string
}

const seconds = (ms: number) => (ms / 1000).toFixed(3)
const iso = (ms: number) => new Date(ms).toISOString()

/** As nginx escapes what clients send. */
function nginxEscaped(text: string): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const isPlain = byte >= 32 && byte < 127 && byte !== 34 && byte !== 92
      return isPlain ? String.fromCharCode(byte) : `\\x${byte.toString(16).toUpperCase().padStart(2, '0')}`
    })
    .join('')
}

/** As Apache does. */
function apacheEscaped(text: string): string {
  return nginxEscaped(text).replaceAll('\\x22', '\\"').replaceAll('\\x5C', '\\\\').replaceAll('\\x0A', '\\n')
}

function combined(escaped: (text: string) => string) {
  return ({ ip, endMs, method, target, status, bytes, agent }: Logged) =>
    `${ip} - - [${clfDate(endMs)}] "${escaped(`${method} ${target} HTTP/1.1`)}" ${status} ${bytes} "-" "${escaped(agent)}"`
}

export interface Writer {
  readonly by: string
  /** As `--format` takes it. */
  readonly format: string
  /** Whether times are to the ms, with durations. */
  readonly isExact: boolean
  /** Whether it has agents. */
  readonly hasAgent: boolean
  line(request: Logged): string
}

/** Lines as servers write them. */
export const WRITERS: readonly Writer[] = [
  { by: 'nginx', format: 'combined', isExact: false, hasAgent: true, line: combined(nginxEscaped) },
  { by: 'Apache', format: 'combined', isExact: false, hasAgent: true, line: combined(apacheEscaped) },
  {
    by: 'Apache',
    format: 'common',
    isExact: false,
    hasAgent: false,
    line: (request) => combined(apacheEscaped)(request).replace(/ "-" ".*"$/, ''),
  },
  {
    by: 'nginx',
    format: 'main',
    isExact: false,
    hasAgent: true,
    line: (request) => `${combined(nginxEscaped)(request)} "192.0.2.1, ${request.ip}"`,
  },
  {
    by: 'Apache',
    format: 'vhost_combined',
    isExact: false,
    hasAgent: true,
    line: (request) => `www.example.test:443 ${combined(apacheEscaped)(request)}`,
  },
  {
    by: 'nginx',
    format: '$msec|$request_time|$remote_addr|$request_method $request_uri $status $bytes_sent "$http_user_agent"',
    isExact: true,
    hasAgent: true,
    line: ({ endMs, durationMs, ip, method, target, status, bytes, agent }) =>
      `${seconds(endMs)}|${seconds(durationMs)}|${ip}|${method} ${nginxEscaped(target)} ${status} ${bytes} "${nginxEscaped(agent)}"`,
  },
  {
    by: 'Caddy',
    format: 'caddy',
    isExact: true,
    hasAgent: true,
    line: ({ endMs, durationMs, ip, method, target, status, bytes, agent }) =>
      JSON.stringify({
        // Caddy writes µs.
        ts: (endMs + 0.25) / 1000,
        request: { remote_ip: ip, method, uri: target, host: 'example.test', headers: { 'User-Agent': [agent] } },
        duration: durationMs / 1000,
        size: bytes,
        status,
      }),
  },
  {
    by: 'Traefik',
    format: 'traefik',
    isExact: true,
    hasAgent: true,
    line: ({ endMs, durationMs, ip, method, target, status, bytes, agent }) =>
      JSON.stringify({
        ClientHost: ip,
        DownstreamContentSize: bytes,
        DownstreamStatus: status,
        Duration: durationMs * 1e6,
        RequestMethod: method,
        RequestPath: target,
        StartUTC: iso(endMs - durationMs),
        'request_User-Agent': agent,
        time: iso(endMs),
      }),
  },
  {
    by: 'pino-http',
    format: 'pino-http',
    isExact: true,
    hasAgent: true,
    line: ({ endMs, durationMs, ip, method, target, status, bytes, agent }) =>
      JSON.stringify({
        level: 30,
        time: endMs,
        req: { method, url: target, headers: { host: 'example.test', 'user-agent': agent }, remoteAddress: ip },
        res: { statusCode: status, headers: { 'content-length': bytes } },
        responseTime: durationMs,
      }),
  },
  {
    by: 'an ALB',
    format: 'aws-alb',
    isExact: true,
    hasAgent: true,
    line: ({ endMs, durationMs, ip, method, target, status, bytes, agent }) =>
      `https ${iso(endMs)} app/a/1 ${ip.includes(':') ? `[${ip}]` : ip}:2817 10.0.0.1:80 0.0 0.0 0.0 ${status} ${status} 0 ${bytes} "${method} https://example.test:443${nginxEscaped(target)} HTTP/1.1" "${nginxEscaped(agent)}" - - arn:a "Root=1" "-" "-" 0 ${iso(endMs - durationMs)} "forward" "-" "-"`,
  },
  {
    by: 'CloudFront',
    format: 'cloudfront',
    isExact: false,
    hasAgent: true,
    line: ({ endMs, ip, method, target, status, bytes, agent }) => {
      const [path, query = '-'] = target.split('?')
      const [date, time] = iso(endMs).slice(0, 19).split('T')
      return [date, time, bytes, ip, method, path, status, encodeURIComponent(agent), query].join('\t')
    },
  },
]

/** The lines before the first request, each with its break. */
export function headOf({ format }: Writer): string {
  if (format !== 'cloudfront') return ''
  return '#Version: 1.0\n#Fields: date time sc-bytes c-ip cs-method cs-uri-stem sc-status cs(User-Agent) cs-uri-query\n'
}
