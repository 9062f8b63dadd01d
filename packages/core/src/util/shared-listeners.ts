interface Shared {
  readonly listeners: Set<() => void>
  readonly dispatch: () => void
}

/**
 * Listeners that share one listener on what they listen to. Node warns of a leak where one emitter has many
 * (`MaxListenersExceededWarning`), and goes through all listeners of a signal whenever one comes or goes.
 */
export class SharedListeners<Source extends object> {
  readonly #add: (source: Source, dispatch: () => void) => void
  readonly #remove: (source: Source, dispatch: () => void) => void
  readonly #sharedBy = new WeakMap<Source, Shared>()

  constructor(
    add: (source: Source, dispatch: () => void) => void,
    remove: (source: Source, dispatch: () => void) => void,
  ) {
    this.#add = add
    this.#remove = remove
  }

  /** Listens until the returned function is called. */
  listen(source: Source, listener: () => void): () => void {
    const { listeners, dispatch } = this.#sharedBy.get(source) ?? this.#share(source)
    if (listeners.size === 0) this.#add(source, dispatch)
    listeners.add(listener)
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) this.#remove(source, dispatch)
    }
  }

  #share(source: Source): Shared {
    const listeners = new Set<() => void>()
    const dispatch = () => {
      // A copy: a listener may remove itself or others.
      for (const listener of [...listeners]) if (listeners.has(listener)) listener()
    }
    const shared = { listeners, dispatch }
    this.#sharedBy.set(source, shared)
    return shared
  }
}
