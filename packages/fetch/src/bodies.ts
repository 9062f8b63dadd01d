/** Gives up a stream, of the web or of Node. Does not wait: a copy that nobody reads, as of `clone()`, would hold it up. */
export function cancelBody(body: unknown): void {
  if (body instanceof ReadableStream) body.cancel().catch(() => {})
  else if (isEmitter(body)) body.destroy?.()
}

type Emitter = Record<'on' | 'off', (event: 'error', listener: (error: Error) => void) => void> & {
  destroy?(): void
}

function isEmitter(body: unknown): body is Emitter {
  const { on, off } = (body ?? {}) as Partial<Emitter>
  return typeof on === 'function' && typeof off === 'function'
}
