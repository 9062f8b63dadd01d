import { Readable } from 'node:stream'
import type { HttpContext } from '../../request/context.js'
import { invalidPolicy, neverWithout, SluiceError, show } from '../../util/errors.js'
import { knowFactories } from '../../util/factories.js'
import { isRecord } from '../../util/is-record.js'
import { knownOptions } from '../../util/validate.js'
import type { HeaderField } from '../headers/writer.js'
import { waitWithClient } from '../response/wait.js'
import { type IsForEveryone, isAnonymousRequest } from './anonymous-request.js'
import { fallback } from './fallback.js'
import { type Action, type Refused, type Reply, type Responder, withTraits } from './responder.js'
import type { Sample } from './sample.js'
import { Samples } from './samples.js'

type Fields = Readonly<Record<string, string>>

export interface ShadowOptions<Request> {
  /** 200 to 599. @default 200 */
  readonly status?: number
  /** Text, bytes, or an object that is sent as JSON; or a function of the request. @default that of the sample, else 'OK' */
  readonly body?: ShadowBody | ((request: Request) => ShadowBody | Promise<ShadowBody>)
  /** @default that of the sample, else by `body`: JSON for an object, text for a text */
  readonly contentType?: string
  /** Beside those of the sample, or in their place: what the handler sets for each response anew. */
  readonly headers?: Fields | ((request: Request) => Fields | Promise<Fields>)
  /**
   * Whether to look on at answers that are for every client, and to answer the same URL with the last of them, as a shared
   * cache would. Learns from 200 to GET of up to 64 KiB, at most one in 10 s per URL, 1,000 URLs and 8 MiB in all; never
   * from requests with `Cookie`, `Authorization`, `Proxy-Authorization`, a TLS client certificate or a body, nor from
   * answers with `Set-Cookie`, `Cache-Control: private` or `no-store`, or `Vary: *`. `true` learns from requests that have
   * ordinary headers only, so not from one with `X-Api-Key`; a function of the request says instead whether its answer is
   * for every client (true or false, at once). What an answer depends on beyond that and its URL, `Vary` has to name.
   * @default false
   */
  readonly learn?: boolean | IsForEveryone<Request>
  /** Beside `learn`: what answers without `body` where there is no sample for a request. @default 404 with the text `Not Found` */
  readonly otherwise?: Responder<Request>
  /** Beside `learn`: whether to answer only after as long as the sample's handler took, 10 seconds at most. @default false */
  readonly delayLike?: boolean
}

export type ShadowBody = string | Uint8Array | object

/** A slow handler must not let clients hold connections for as long. */
const MAX_DELAY_MS = 10_000
/** What a handler says of its body, which another body would show to be a lie. */
const OF_BODY = /^(etag|content-encoding|content-md5|digest|content-digest|repr-digest)$/i

/**
 * Answers a refused request with what looks like success; the handler does not run, and nothing says
 * why. Since the lack of quota fields would show it, a limiter with a shadow among its responders sends
 * none with what it admits either.
 *
 * What it cannot hide: how long the handler takes (`delayLike` helps), what it does to the world, what
 * it answers to a request that it would not have liked, and headers that differ with each response.
 *
 * @example app.post('/login', rateLimit({ limit: 5, window: '15m', respond: shadow({ body: { ok: true } }) }))
 * @throws SluiceError `INVALID_POLICY`
 */
export function shadow<Request>(options: ShadowOptions<Request> = {}): Responder<Request> {
  knownOptions('shadow', options, ['status', 'body', 'contentType', 'headers', 'learn', 'delayLike', 'otherwise'])
  const { status, body, contentType, headers = {}, learn = false, delayLike = false } = options
  if (status !== undefined && !(Number.isInteger(status) && status >= 200 && status <= 599)) {
    invalidPolicy('shadow', 'status', 'a whole number from 200 to 599', status)
  }
  if (body !== undefined && typeof body !== 'function') checkedBody(body)
  if (contentType !== undefined && typeof contentType !== 'string') {
    invalidPolicy('shadow', 'contentType', 'a string such as "text/html"', contentType)
  }
  if (typeof headers !== 'function') checkedHeaders(headers)
  if (typeof learn !== 'boolean' && typeof learn !== 'function') {
    invalidPolicy('shadow', 'learn', 'true, false or a function', learn)
  }
  if (typeof delayLike !== 'boolean' || (delayLike && !learn)) {
    invalidPolicy('shadow', 'delayLike', 'true or false, and true only beside learn', delayLike)
  }
  if (options.otherwise !== undefined && !learn) {
    neverWithout('shadow', 'otherwise', 'learn', options.otherwise)
  }
  const otherwise =
    learn && options.otherwise === undefined
      ? notFound<Request>()
      : fallback<Request>('shadow', 'otherwise', options.otherwise)
  const samples = learn ? new Samples() : undefined

  async function shadow(refused: Refused<Request>): Promise<Action> {
    const { context } = refused
    const sample = samples?.for(context as HttpContext<never>)
    if (samples && !sample && body === undefined) return otherwise(refused)
    const own = typeof body === 'function' ? checkedBody(await body(context.request)) : body
    const extra = typeof headers === 'function' ? checkedHeaders(await headers(context.request)) : headers
    const reply = compose(context, sample, { status, body: own, contentType, headers: extra })
    const delayMs = delayLike && sample ? Math.min(sample.tookMs, MAX_DELAY_MS) : 0
    if (delayMs > 0 && !(await waitWithClient(context.response, delayMs))) return 'gone'
    return reply
  }

  function onAdmitted(context: HttpContext<Request>): void {
    const anyones = context as HttpContext<never>
    if (learn && samples?.wants(anyones) && isAnonymousRequest(context, learn)) samples.learnFrom(anyones)
  }

  return withTraits(shadow, otherwise, { hidesQuota: true, ...(learn && { onAdmitted }) })
}

/** As plain as a server answers where there is nothing. */
function notFound<Request>(): Responder<Request> {
  return shadow({ status: 404, body: 'Not Found' })
}

interface Own {
  readonly status: number | undefined
  readonly body: ShadowBody | undefined
  readonly contentType: string | undefined
  readonly headers: Fields
}

function compose<Request>(context: HttpContext<Request>, sample: Sample | undefined, own: Own): Reply {
  const isJson = typeof own.body === 'object' && !(own.body instanceof Uint8Array)
  const bytes: string | Uint8Array = isJson
    ? JSON.stringify(own.body)
    : ((own.body as string | Uint8Array | undefined) ?? sample?.body ?? 'OK')
  const fields: HeaderField[] = []
  for (const [name, value] of sample?.headers ?? []) {
    // What is there already is this response's own, such as a request's id.
    if (context.getResponseHeader(name) !== undefined) continue
    if (/^content-length$/i.test(name)) fields.push([name, String(Buffer.byteLength(bytes))])
    else if (!OF_BODY.test(name) || own.body === undefined) fields.push([name, value])
  }
  const type = own.contentType ?? (own.body !== undefined || !sample ? typeOf(own.body) : undefined)
  if (type !== undefined) put(fields, 'Content-Type', type)
  for (const [name, value] of Object.entries(own.headers)) put(fields, name, value)
  return {
    status: own.status ?? 200,
    headers: fields,
    body: sample?.isChunked ? Readable.from(bytes.length > 0 ? [Buffer.from(bytes)] : []) : bytes,
    showsQuota: false,
    likeHandler: !sample || sample.headers.some(([name]) => /^etag$/i.test(name)),
  }
}

function put(fields: HeaderField[], name: string, value: string): void {
  const at = fields.findIndex(([known]) => known.toLowerCase() === name.toLowerCase())
  if (at < 0) fields.push([name, value])
  else fields[at] = [(fields[at] as HeaderField)[0], value]
}

function typeOf(body: ShadowBody | undefined): string {
  if (body instanceof Uint8Array) return 'application/octet-stream'
  return typeof body === 'object' ? 'application/json; charset=utf-8' : 'text/plain; charset=utf-8'
}

function checkedBody(body: unknown): ShadowBody {
  if (typeof body === 'string' || (typeof body === 'object' && body !== null)) return body
  throw new SluiceError('INVALID_POLICY', `shadow: body: expected a string, bytes or an object, got ${show(body)}`)
}

function checkedHeaders(headers: unknown): Fields {
  const isFields = isRecord(headers)
  if (isFields && Object.values(headers).every((value) => typeof value === 'string')) return headers as Fields
  throw new SluiceError('INVALID_POLICY', `shadow: headers: expected an object of strings, got ${show(headers)}`)
}

knowFactories({ 'shadow()': shadow })
