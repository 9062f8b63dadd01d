import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { HttpContext } from '../../request/context.js'
import { rawRequest } from '../../request/raw-request.js'
import { invalidPolicy } from '../../util/errors.js'

/** Whether a response is for every client that asks for the same: true or false, at once. */
export type IsForEveryone<Request> = (request: Request, context: HttpContext<Request>) => boolean

/** What names a client by HTTP itself. */
const CREDENTIALS = ['authorization', 'cookie', 'proxy-authorization'] as const

/**
 * Headers that browsers, proxies and HTTP libraries send for all users. A closed list: a header that it does not name, such
 * as `X-Api-Key`, may identify the client.
 */
const ORDINARY = new RegExp(
  `^(?:${[
    ':.*|host|connection|keep-alive|te|upgrade|http2-settings|via|max-forwards|date|expect|early-data|priority',
    'accept|accept-(?:charset|encoding|language|datetime)|cache-control|pragma|if-.*|range|content-(?:length|type)',
    'user-agent|referer|origin|dnt|save-data|upgrade-insecure-requests|purpose|x-requested-with',
    'sec-(?:ch|fetch)-.*|sec-(?:gpc|purpose)|device-memory|downlink|ect|rtt|dpr|viewport-width|width',
    'x-forwarded-(?:for|host|port|proto)|x-real-ip|x-client-ip|true-client-ip|fastly-client-ip',
    'cdn-loop|cf-(?:connecting-ip|ipcountry|ray|visitor)|x-amzn-trace-id|x-cloud-trace-context',
    'x-request-id|x-correlation-id|request-id|traceparent|tracestate|b3|x-b3-.*',
  ].join('|')})$`,
)

/**
 * Whether a request says nothing of its sender, as far as that can be known: a GET without a body, credentials or client
 * certificate, and with ordinary headers alone. A function decides in place of the list of those.
 *
 * @throws SluiceError `INVALID_POLICY` where the function gives neither true nor false
 */
export function isAnonymousRequest<Request>(
  context: HttpContext<Request>,
  isForEveryone: IsForEveryone<Request> | true,
): boolean {
  const raw = rawRequest(context as HttpContext<never>)
  if (!raw || context.method !== 'GET' || hasCredentials(raw) || hasBody(raw.headers)) return false
  // A client that wants nothing kept is obeyed, as by a cache (RFC 9111 §5.2.1.5).
  if (/\bno-store\b/i.test(raw.headers['cache-control'] ?? '')) return false
  if (isForEveryone === true) return Object.keys(raw.headers).every((name) => ORDINARY.test(name))
  const decided: unknown = isForEveryone(context.request, context)
  if (typeof decided === 'boolean') return decided
  invalidPolicy('shadow', 'learn', 'true or false', decided)
}

function hasCredentials(raw: IncomingMessage): boolean {
  if (CREDENTIALS.some((name) => raw.headers[name] !== undefined)) return true
  const certificate = (raw.socket as Partial<TLSSocket> | null)?.getPeerCertificate?.()
  return certificate != null && Object.keys(certificate).length > 0
}

function hasBody(headers: IncomingHttpHeaders): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
