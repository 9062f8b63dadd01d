import { listenTo, type RawResponse } from '@sluice/core/http'

type End = 'finish' | 'close'

/** The response of one field or message of several that share a response or a socket, which all of them would take for theirs. */
export class InvocationResponse implements RawResponse {
  readonly #shared: RawResponse
  readonly #ignored = new Map<() => void, () => void>()

  constructor(shared: RawResponse) {
    this.#shared = shared
  }

  get destroyed(): boolean {
    return this.#shared.destroyed === true
  }

  get writableFinished(): boolean {
    return this.#shared.writableFinished === true
  }

  get headersSent(): boolean {
    return this.#shared.headersSent === true
  }

  get req(): unknown {
    return this.#shared.req
  }

  on(event: End, listener: () => void): this {
    this.#ignored.set(listener, listenTo(this.#shared, event, listener))
    return this
  }

  removeListener(_event: End, listener: () => void): this {
    this.#ignored.get(listener)?.()
    this.#ignored.delete(listener)
    return this
  }
}
