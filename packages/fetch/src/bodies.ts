/** Listens for the failure of a stream of Node, as nobody else does before it is sent. Returns a function that ends it. */
export function onBodyError(body: unknown, listener: (error: Error) => void): () => void {
  if (!isEmitter(body)) return () => {}
  body.on('error', listener)
  return () => body.off('error', listener)
}

/** A signal that the failure of a stream of Node aborts; undefined for other bodies. */
export function failureOf(body: unknown): { readonly signal: AbortSignal; readonly ignore: () => void } | undefined {
  if (!isEmitter(body)) return undefined
  const failure = new AbortController()
  return { signal: failure.signal, ignore: onBodyError(body, (error) => failure.abort(error)) }
}

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
