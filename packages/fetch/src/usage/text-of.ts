/**
 * The text of the body of a Request; undefined for forms and streams.
 *
 * Each body of a Request is a stream. Text and bytes are one chunk, which is there at once. No more is read: a stream may be long,
 * and may never end.
 */
export async function textOfRequest(request: Request): Promise<string | undefined> {
  // Fetch itself says that it was used.
  if (!(request.body instanceof ReadableStream) || request.bodyUsed || request.body.locked) return undefined
  const reader = (request.clone().body as ReadableStream<Uint8Array>).getReader()
  const later = new Promise<undefined>((resolve) => setImmediate(() => resolve(undefined)))
  let text: string | undefined = ''
  for (let chunks = 0; ; chunks++) {
    const read = await Promise.race([reader.read(), later]).catch(() => undefined)
    if (read?.done) return text
    if (!read || chunks > 0) break
    text = textOf(read.value)
  }
  // Ends this copy alone, and with the other one, which is sent, the stream.
  reader.cancel().catch(() => {})
  return undefined
}

/** The text of a body; undefined for forms and streams. */
export function textOf(body: unknown): string | undefined {
  if (typeof body === 'string') return body
  return body instanceof ArrayBuffer || ArrayBuffer.isView(body)
    ? new TextDecoder().decode(body as Uint8Array)
    : undefined
}
