import type { LogFormat } from './format.js'
import { jsonFormat } from './json-lines.js'

/** Servers that log JSON, by the fields that each writes by default. */
export const JSON_FORMATS: readonly LogFormat[] = [
  // https://caddyserver.com/docs/caddyfile/directives/log: times in seconds, when the line is written.
  jsonFormat('caddy', {
    mark: '.request.remote_ip',
    time: '.ts',
    duration: '.duration',
    ip: '.request.remote_ip',
    clientIp: '.request.client_ip',
    method: '.request.method',
    target: '.request.uri',
    status: '.status',
    bytes: '.size',
    user: '.user_id',
    host: '.request.host',
    headers: '.request.headers',
  }),
  // https://doc.traefik.io/traefik/reference/install-configuration/observability/logs-and-accesslogs: ns; headers where they are kept.
  jsonFormat('traefik', {
    mark: '.DownstreamStatus',
    start: '.StartUTC',
    time: '.time',
    duration: '.Duration',
    durationUnitMs: 1e-6,
    ip: '.ClientHost',
    method: '.RequestMethod',
    target: '.RequestPath',
    status: '.DownstreamStatus',
    bytes: '.DownstreamContentSize',
    user: '.ClientUsername',
    host: '.RequestHost',
    headerPrefix: 'request_',
  }),
  // https://github.com/pinojs/pino-http: ms; written when the response is. Lines by req.log have a request, too.
  jsonFormat('pino-http', {
    mark: '.req.method',
    alsoMark: '.responseTime',
    time: '.time',
    duration: '.responseTime',
    durationUnitMs: 1,
    ip: '.req.remoteAddress',
    method: '.req.method',
    target: '.req.url',
    status: '.res.statusCode',
    bytes: '.res.headers.content-length',
    headers: '.req.headers',
  }),
  // https://developers.cloudflare.com/logs/logpush/logpush-job/datasets/zone/http_requests/
  jsonFormat('cloudflare', {
    mark: '.EdgeStartTimestamp',
    start: '.EdgeStartTimestamp',
    time: '.EdgeEndTimestamp',
    ip: '.ClientIP',
    method: '.ClientRequestMethod',
    target: '.ClientRequestURI',
    status: '.EdgeResponseStatus',
    bytes: '.EdgeResponseBytes',
    host: '.ClientRequestHost',
    agent: '.ClientRequestUserAgent',
  }),
]
