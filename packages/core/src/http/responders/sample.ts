import type { ServerResponse } from 'node:http'
import type { HeaderField } from '../headers/writer.js'
import { listenTo } from '../response/shared-listener.js'

/** A handler's response with status 200. */
export interface Sample {
  /** In the order and the spelling in which they were sent, without those of one response alone. */
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
  /** Whether it was sent in chunks, without a length. */
  readonly isChunked: boolean
  /** Milliseconds from the handler's start to the end of its response; a client that reads slowly adds little. */
  readonly tookMs: number
  /** When it was taken, by `performance.now()`. */
  readonly takenAt: number
}

/** Belong to one response or one connection, or, a cookie, to one client; `:status` is no header. Node writes its own. */
const NOT_KEPT = /^(:.*|date|set-cookie|connection|keep-alive|transfer-encoding|trailer|content-length)$/i
/** Fields that are for one client. */
const PERSONAL = /^(set-cookie2?|authorization|authentication-info|proxy-authentication-info)$/i
/** `Cache-Control`, and those for some caches alone (RFC 9213). */
const CACHE_CONTROL = /^(.*-)?cache-control$|^surrogate-control$/i
const NOT_SHARED = /\b(private|no-store)\b/i
/** These responses are a part of another one, or none, and say nothing about that. */
const PARTIAL = new Set([206, 304, 412, 416])

/**
 * Watches the response of a handler, and calls back with it if it is the same for all clients: 200, no cookie set, no
 * `Cache-Control: private` or `no-store`, no `Vary: *`, and at most `maxBytes`. Calls back with undefined for
 * another response; not at all for a part of one, or where the client left. The returned function stops it.
 */
export function watch(
  response: ServerResponse,
  maxBytes: number,
  found: (sample: Sample | undefined) => void,
): () => void {
  const writeHead = response.writeHead as (...args: unknown[]) => ServerResponse
  const write = response.write as (...args: unknown[]) => boolean
  const end = response.end as (...args: unknown[]) => ServerResponse
  const startedAt = performance.now()
  const chunks: Uint8Array[] = []
  let size = 0
  let isChunked = false
  let isEnding = false
  let isStopped = false
  let endedAt = startedAt
  let inHead: unknown
  let fields: HeaderField[] | undefined

  // Headers as they are when the body passes here: outer middleware that adds more will add them again.
  function see(chunk: unknown, encoding: unknown): void {
    if (isStopped) return
    fields ??= fieldsOf(response, inHead)
    if (size > maxBytes || !(typeof chunk === 'string' || chunk instanceof Uint8Array)) return
    const bytes =
      typeof chunk === 'string'
        ? Buffer.from(chunk, typeof encoding === 'string' ? (encoding as BufferEncoding) : 'utf8')
        : Uint8Array.from(chunk)
    size += bytes.length
    if (size <= maxBytes) chunks.push(bytes)
    else chunks.length = 0
  }

  response.writeHead = ((...args: unknown[]) => {
    inHead = args.find((arg) => typeof arg === 'object' && arg !== null)
    return writeHead.apply(response, args)
  }) as typeof response.writeHead
  response.write = ((...args: unknown[]) => {
    // Over HTTP/2, `end` writes.
    if (!isEnding) {
      isChunked = true
      see(args[0], args[1])
    }
    return write.apply(response, args)
  }) as typeof response.write
  response.end = ((...args: unknown[]) => {
    if (!isEnding) {
      see(args[0], args[1])
      endedAt = performance.now()
    }
    isEnding = true
    return end.apply(response, args)
  }) as typeof response.end

  const ignoreFinish = listenTo(response, 'finish', () => {
    ignoreFinish()
    const status = response.statusCode
    if (PARTIAL.has(status)) return
    // Headers of outer middleware, such as a session's cookie, make it personal as well.
    const isShared = [...(fields ?? []), ...fieldsOf(response, inHead)].every(isForAll)
    if (!fields || !isShared || status !== 200 || size > maxBytes) {
      found(undefined)
      return
    }
    const headers = fields.filter(([name]) => !NOT_KEPT.test(name) || (!isChunked && /^content-length$/i.test(name)))
    const hasLength = fields.some(([name]) => /^content-length$/i.test(name))
    found({
      headers,
      body: Buffer.concat(chunks),
      isChunked: isChunked && !hasLength,
      tookMs: endedAt - startedAt,
      takenAt: performance.now(),
    })
  })
  return () => {
    isStopped = true
    chunks.length = 0
    ignoreFinish()
  }
}

function isForAll([name, value]: HeaderField): boolean {
  if (PERSONAL.test(name) || (CACHE_CONTROL.test(name) && NOT_SHARED.test(value))) return false
  return !(/^vary$/i.test(name) && value.includes('*'))
}

function fieldsOf(response: ServerResponse, inHead: unknown): HeaderField[] {
  // HTTP/2 knows no spelling but the lower case.
  const { getRawHeaderNames = response.getHeaderNames } = response as { getRawHeaderNames?: () => string[] }
  const names = getRawHeaderNames.call(response)
  const fields = names.map((name): HeaderField => [name, valueText(response.getHeader(name))])
  // Given to `writeHead` alone, headers are sent and not kept.
  for (const [name, value] of pairsOf(inHead)) {
    if (!fields.some(([known]) => known.toLowerCase() === name.toLowerCase())) fields.push([name, valueText(value)])
  }
  return fields
}

function pairsOf(headers: unknown): [string, unknown][] {
  if (!Array.isArray(headers)) return Object.entries((headers ?? {}) as object)
  if (Array.isArray(headers[0])) return headers as [string, unknown][]
  return headers.flatMap((name, i) => (i % 2 === 0 ? [[String(name), headers[i + 1]] as [string, unknown]] : []))
}

function valueText(value: unknown): string {
  return Array.isArray(value) ? value.join(', ') : String(value)
}
