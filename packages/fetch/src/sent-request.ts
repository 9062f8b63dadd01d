import type { MaybePromise } from '@sluice/core/internal'
import { textOf, textOfRequest } from './usage/text-of.js'

/** A Request of any implementation, such as that of the package `undici`. */
function isRequest(value: unknown): value is Request {
  const { url, clone } = (value ?? {}) as Partial<Request>
  return typeof url === 'string' && typeof clone === 'function'
}

/** A request as `fetch` sends it. */
export interface SentRequest {
  readonly url: URL
  /** In upper case. */
  readonly method: string
  readonly headers: Headers
  readonly signal: AbortSignal | undefined
  readonly body: unknown
}

/** Reads the arguments of `fetch` as it reads them: a field of `init` replaces that of a Request. Both may be a Request. */
export function sentRequest(input: string | URL | Request, init: RequestInit = {}): SentRequest {
  const given = isRequest(input) ? input : undefined
  const { method, headers, signal, body } = init
  return {
    url: new URL(given?.url ?? String(input)),
    method: (method ?? given?.method ?? 'GET').toUpperCase(),
    headers: new Headers(headers ?? given?.headers),
    // Null: none, also where the Request has one.
    signal: (signal === undefined ? given?.signal : signal) ?? undefined,
    body: body ?? given?.body ?? undefined,
  }
}

/** With another signal. A Request has its fields as getters of its prototype, which a spread would lose. */
export function withSignal(init: RequestInit | undefined, signal: AbortSignal): RequestInit {
  const fields: Record<string, unknown> = {}
  for (const name in init) fields[name] = init[name as keyof RequestInit]
  return { ...fields, signal }
}

/** The body of a request as text; undefined for forms and streams. */
export function textIn(input: string | URL | Request, init: RequestInit | undefined): MaybePromise<string | undefined> {
  const source = init?.body ? init : input
  return isRequest(source) ? textOfRequest(source) : textOf(init?.body)
}

/** A stream is gone once it was sent. */
export function isReplayable(body: unknown): boolean {
  return (
    body === undefined ||
    typeof body === 'string' ||
    body instanceof URLSearchParams ||
    body instanceof FormData ||
    body instanceof Blob ||
    body instanceof ArrayBuffer ||
    ArrayBuffer.isView(body)
  )
}
