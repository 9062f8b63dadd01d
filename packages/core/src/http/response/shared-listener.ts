/** The emitter of the end of a response: the response itself, or its stream over HTTP/2. */
export interface EndEmitter {
  on(event: EndEvent, listener: () => void): unknown
  removeListener(event: EndEvent, listener: () => void): unknown
}

type EndEvent = 'finish' | 'close'

interface Shared {
  readonly listeners: Set<() => void>
  readonly dispatch: () => void
}

const sharedBy = { finish: new WeakMap<EndEmitter, Shared>(), close: new WeakMap<EndEmitter, Shared>() }

/**
 * Listens for the end of a response until the returned function is called. Every limiter of a request needs several such
 * listeners. They share one listener on the response, as Node would warn about a leak (`MaxListenersExceededWarning`).
 */
export function listenTo(emitter: EndEmitter, event: EndEvent, listener: () => void): () => void {
  const shared = sharedBy[event].get(emitter) ?? share(emitter, event)
  const { listeners, dispatch } = shared
  if (listeners.size === 0) emitter.on(event, dispatch)
  listeners.add(listener)
  return () => {
    if (listeners.delete(listener) && listeners.size === 0) emitter.removeListener(event, dispatch)
  }
}

function share(emitter: EndEmitter, event: EndEvent): Shared {
  const listeners = new Set<() => void>()
  const dispatch = () => {
    // A copy: a listener may remove itself or others.
    for (const listener of [...listeners]) if (listeners.has(listener)) listener()
  }
  const shared = { listeners, dispatch }
  sharedBy[event].set(emitter, shared)
  return shared
}
