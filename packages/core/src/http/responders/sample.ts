import type { ServerResponse } from 'node:http'
import type { HeaderField } from '../headers/writer.js'

/** What a handler answered. */
export interface Sample {
  readonly status: number
  /** In the order and the spelling in which they were sent, without those of one response alone. */
  readonly headers: readonly HeaderField[]
  readonly body: Uint8Array
  /** Whether it was sent in chunks, without a length. */
  readonly isChunked: boolean
  /** Milliseconds from the handler's start to the end of its answer. */
  readonly tookMs: number
  /** When it was taken, by `performance.now()`. */
  readonly takenAt: number
}

/** Belong to one response or one connection, or, a cookie, to one client; `:status` is no header. Node writes its own. */
const NOT_KEPT = /^(:.*|date|set-cookie|connection|keep-alive|transfer-encoding|trailer|content-length)$/i
/** What is meant for one client must not be handed to another. */
const PERSONAL = /\b(private|no-store)\b/i

/**
 * Looks on while a handler answers, and hands over what it saw if that was a success that others
 * may see: 2xx, no cookie set, no `Cache-Control: private` or `no-store`, and at most `maxBytes`.
 */
export function watch(response: ServerResponse, maxBytes: number, found: (sample: Sample) => void): void {
  const writeHead = response.writeHead as (...args: unknown[]) => ServerResponse
  const write = response.write as (...args: unknown[]) => boolean
  const end = response.end as (...args: unknown[]) => ServerResponse
  const startedAt = performance.now()
  const chunks: Uint8Array[] = []
  let size = 0
  let isChunked = false
  let isEnding = false
  let inHead: unknown
  let fields: HeaderField[] | undefined

  // Headers as they stand when the body comes by here: what is added further out will be added again.
  function see(chunk: unknown, encoding: unknown): void {
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
    if (!isEnding) see(args[0], args[1])
    isEnding = true
    return end.apply(response, args)
  }) as typeof response.end

  response.once('finish', () => {
    const status = response.statusCode
    if (!fields || status < 200 || status > 299 || size > maxBytes || isPersonal(fields)) return
    const headers = fields.filter(([name]) => !NOT_KEPT.test(name) || (!isChunked && /^content-length$/i.test(name)))
    const hasLength = fields.some(([name]) => /^content-length$/i.test(name))
    const takenAt = performance.now()
    found({
      status,
      headers,
      body: Buffer.concat(chunks),
      isChunked: isChunked && !hasLength,
      tookMs: takenAt - startedAt,
      takenAt,
    })
  })
}

function isPersonal(fields: readonly HeaderField[]): boolean {
  return fields.some(
    ([name, value]) => /^set-cookie$/i.test(name) || (/^cache-control$/i.test(name) && PERSONAL.test(value)),
  )
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
