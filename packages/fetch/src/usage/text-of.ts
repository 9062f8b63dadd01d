/** The text of a body; undefined for forms and streams. */
export function textOf(body: unknown): string | undefined {
  if (typeof body === 'string') return body
  return body instanceof ArrayBuffer || ArrayBuffer.isView(body)
    ? new TextDecoder().decode(body as Uint8Array)
    : undefined
}
