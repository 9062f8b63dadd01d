interface Shared {
  readonly listeners: Set<() => void>
  readonly dispatch: () => void
}

const sharedBy = new WeakMap<AbortSignal, Shared>()

/**
 * Listens for the abort of a signal until the returned function is called. Those who wait with one signal share one listener on
 * it: Node goes through all listeners of a signal whenever one comes or goes.
 */
export function onAbort(signal: AbortSignal, listener: () => void): () => void {
  const { listeners, dispatch } = sharedBy.get(signal) ?? share(signal)
  if (listeners.size === 0) signal.addEventListener('abort', dispatch)
  listeners.add(listener)
  return () => {
    if (listeners.delete(listener) && listeners.size === 0) signal.removeEventListener('abort', dispatch)
  }
}

function share(signal: AbortSignal): Shared {
  const listeners = new Set<() => void>()
  const dispatch = () => {
    // A copy: a listener removes itself, and may remove others.
    for (const listener of [...listeners]) if (listeners.has(listener)) listener()
  }
  const shared = { listeners, dispatch }
  sharedBy.set(signal, shared)
  return shared
}
