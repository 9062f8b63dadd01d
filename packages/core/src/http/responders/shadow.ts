import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { invalidPolicy, SluiceError, show } from '../../errors.js'
import { knownOptions } from '../../limits/checks.js'
import type { HttpContext } from '../context.js'
import type { HeaderField } from '../headers/writer.js'
import { waitWithClient } from '../wait.js'
import type { Action, Reply, Responder } from './responder.js'
import { type Sample, watch } from './sample.js'

type Fields = Readonly<Record<string, string>>

export interface ShadowOptions<Request> {
  /** 200 to 599. @default that of the sample, else 200 */
  readonly status?: number
  /** Text, bytes, or an object that is sent as JSON; or a function of the request. @default that of the sample, else 'OK' */
  readonly body?: ShadowBody | ((request: Request) => ShadowBody | Promise<ShadowBody>)
  /** @default that of the sample, else by `body`: JSON for an object, text for a text */
  readonly contentType?: string
  /** Beside those of the sample, or in their place: what the handler sets for each response anew. */
  readonly headers?: Fields | ((request: Request) => Fields | Promise<Fields>)
  /**
   * Whether to look on at successes of the same method and route, or path where no route is known yet (2xx, up to 64 KiB, at most one in
   * 10 s), and to answer like the last: its status, headers and body. That hands one client's answer
   * to another, so use it only where all get the same. What says that it is not, by `Set-Cookie` or
   * `Cache-Control: private` or `no-store`, is not learned from; nor are answers to requests with
   * `Authorization`, where `body` is not given. @default false
   */
  readonly learn?: boolean
  /** Beside `learn`: whether to answer only after as long as the sample's handler took. @default false */
  readonly delayLike?: boolean
}

export type ShadowBody = string | Uint8Array | object

const MAX_SAMPLES = 100
const MAX_SAMPLE_BYTES = 64 * 1024
const SAMPLE_EVERY_MS = 10_000

/**
 * Answers a refused request with what looks like success; the handler does not run, and nothing says
 * why. Since the lack of quota fields would tell, a limiter with a shadow among its responders sends
 * none with what it admits either.
 *
 * What it cannot hide: how long the handler takes (`delayLike` helps), what it does to the world, what
 * it answers to a request that it would not have liked, and headers that differ with each response.
 *
 * @example app.post('/login', rateLimit({ limit: 5, window: '15m', key: byHeader('x-account'), respond: shadow({ body: { ok: true } }) }))
 * @throws SluiceError `INVALID_POLICY`
 */
export function shadow<Request>(options: ShadowOptions<Request> = {}): Responder<Request> {
  knownOptions('shadow', options, ['status', 'body', 'contentType', 'headers', 'learn', 'delayLike'])
  const { status, body, contentType, headers = {}, learn = false, delayLike = false } = options
  if (status !== undefined && !(Number.isInteger(status) && status >= 200 && status <= 599)) {
    invalidPolicy('shadow', 'status', 'a whole number from 200 to 599', status)
  }
  if (body !== undefined && typeof body !== 'function') checkedBody(body)
  if (contentType !== undefined && typeof contentType !== 'string') {
    invalidPolicy('shadow', 'contentType', 'a text', contentType)
  }
  if (typeof headers !== 'function') checkedHeaders(headers)
  if (typeof learn !== 'boolean') invalidPolicy('shadow', 'learn', 'true or false', learn)
  if (typeof delayLike !== 'boolean' || (delayLike && !learn)) {
    invalidPolicy('shadow', 'delayLike', 'true or false, and true only beside learn', delayLike)
  }
  const samples = new Map<string, Sample>()

  async function shadow({ context }: Parameters<Responder<Request>>[0]): Promise<Action> {
    const sample = samples.get(sampleKey(context))
    const own = typeof body === 'function' ? checkedBody(await body(context.request)) : body
    const extra = typeof headers === 'function' ? checkedHeaders(await headers(context.request)) : headers
    const reply = compose(context, sample, { status, body: own, contentType, headers: extra })
    if (delayLike && sample && !(await waitWithClient(context.response, sample.tookMs))) return 'gone'
    return reply
  }

  function onAdmitted(context: HttpContext<Request>): void {
    // What answers one who is logged in is nobody else's, unless only its headers are used.
    if (context.method === 'HEAD' || (body === undefined && context.header('authorization') !== undefined)) return
    const key = sampleKey(context)
    const known = samples.get(key)
    if (known && performance.now() - known.takenAt < SAMPLE_EVERY_MS) return
    watch(context.response as unknown as ServerResponse, MAX_SAMPLE_BYTES, (sample) => {
      if (!samples.has(key) && samples.size >= MAX_SAMPLES) samples.delete(samples.keys().next().value as string)
      samples.set(key, sample)
    })
  }

  return Object.assign(shadow, { hidesQuota: true, ...(learn && { onAdmitted }) })
}

/** HEAD is answered like GET, without the body. */
function sampleKey<Request>({ method, route, path }: HttpContext<Request>): string {
  return `${method === 'HEAD' ? 'GET' : method} ${route ?? path}`
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
    // A tag of another body would be a lie that shows.
    else if (!/^etag$/i.test(name) || own.body === undefined) fields.push([name, value])
  }
  const type = own.contentType ?? (own.body !== undefined || !sample ? typeOf(own.body) : undefined)
  if (type !== undefined) put(fields, 'Content-Type', type)
  for (const [name, value] of Object.entries(own.headers)) put(fields, name, value)
  return {
    status: own.status ?? sample?.status ?? 200,
    headers: fields,
    body: sample?.isChunked ? Readable.from(bytes.length > 0 ? [Buffer.from(bytes)] : []) : bytes,
    tellsQuota: false,
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
  throw new SluiceError('INVALID_POLICY', `shadow: body: expected a text, bytes or an object, got ${show(body)}`)
}

function checkedHeaders(headers: unknown): Fields {
  const isFields = typeof headers === 'object' && headers !== null && !Array.isArray(headers)
  if (isFields && Object.values(headers).every((value) => typeof value === 'string')) return headers as Fields
  throw new SluiceError('INVALID_POLICY', `shadow: headers: expected an object of texts, got ${show(headers)}`)
}
