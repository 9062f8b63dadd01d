import { invalidPolicy } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { isRecord } from '../../util/is-record.js'
import { knownOptions } from '../../util/validate.js'
import type { HeaderField } from '../headers/writer.js'
import type { Action, Refused, Responder } from './responder.js'

type Fields = Readonly<Record<string, string>>

export interface ShadowOptions<Request> {
  /** Status of the reply, 200 to 599. @default 200 */
  readonly status?: number
  /** Text, bytes, or an object that is sent as JSON; or a function of the request. @default 'OK' */
  readonly body?: ShadowBody | ((request: Request) => ShadowBody | Promise<ShadowBody>)
  /** @default by `body`: JSON for an object, text for a text */
  readonly contentType?: string
  /**
   * Header fields that the handler would set, in its order; `Content-Type` comes last if it is not among them. A
   * `Cache-Control` that lets shared caches store the reply is replaced.
   * @default `Cache-Control: no-store`
   */
  readonly headers?: Fields | ((request: Request) => Fields | Promise<Fields>)
}

export type ShadowBody = string | Uint8Array | object

/**
 * Replies to a refused request with an apparent success. The handler does not run, and nothing shows the reason. Missing quota
 * fields would reveal it, so a limiter with a shadow among its responders sends none with admitted requests either.
 *
 * Shared caches do not store it: `Cache-Control` is `no-store`, unless the shadow's or the response's own forbids that as well.
 *
 * It cannot hide the handler's duration and side effects, the handler's response to an invalid request, or headers that differ
 * with each response.
 *
 * @example app.post('/login', rateLimit({ limit: 5, window: '15m', respond: shadow({ body: { ok: true } }) }))
 * @throws SluiceError `INVALID_POLICY`
 */
export function shadow<Request>(options: ShadowOptions<Request> = {}): Responder<Request> {
  knownOptions('shadow', options, ['status', 'body', 'contentType', 'headers'])
  const { status = 200, body = 'OK', contentType, headers = {} } = options
  if (!(Number.isInteger(status) && status >= 200 && status <= 599)) {
    invalidPolicy('shadow', 'status', 'a whole number from 200 to 599', status)
  }
  if (typeof body !== 'function') checkedBody(body)
  if (contentType !== undefined && typeof contentType !== 'string') {
    invalidPolicy('shadow', 'contentType', 'a string such as "text/html"', contentType)
  }
  if (typeof headers !== 'function') checkedHeaders(headers)

  async function shadow({ context: { request } }: Refused<Request>): Promise<Action> {
    const content = typeof body === 'function' ? checkedBody(await body(request)) : body
    const extra = typeof headers === 'function' ? checkedHeaders(await headers(request)) : headers
    const fields: HeaderField[] = Object.entries(extra)
    if (!fields.some(([name]) => name.toLowerCase() === 'content-type')) {
      fields.push(['Content-Type', contentType ?? typeOf(content)])
    }
    return { status, headers: fields, body: bytesOf(content), showsQuota: false, likeHandler: true }
  }

  return Object.assign(shadow, { hidesQuota: true, deceives: true })
}

function bytesOf(body: ShadowBody): string | Uint8Array {
  return typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body)
}

function typeOf(body: ShadowBody): string {
  if (body instanceof Uint8Array) return 'application/octet-stream'
  return typeof body === 'object' ? 'application/json; charset=utf-8' : 'text/plain; charset=utf-8'
}

function checkedBody(body: unknown): ShadowBody {
  if (typeof body === 'string' || (typeof body === 'object' && body !== null)) return body
  invalidPolicy('shadow', 'body', 'a string, bytes or an object', body)
}

function checkedHeaders(headers: unknown): Fields {
  if (isRecord(headers) && Object.values(headers).every((value) => typeof value === 'string')) return headers as Fields
  invalidPolicy('shadow', 'headers', 'an object of strings', headers)
}

knowFactories({ 'shadow()': shadow })
