import type { Controller } from './dispatcher.js'

/** Controls a request that waits for its turn, and then the one that is sent. */
export class WaitingController implements Controller {
  #sent: Controller | undefined
  readonly #waiting = new AbortController()
  #isPaused = false

  /** Aborted with the request. */
  get signal(): AbortSignal {
    return this.#waiting.signal
  }

  get aborted(): boolean {
    return this.#sent?.aborted ?? this.#waiting.signal.aborted
  }

  get paused(): boolean {
    return this.#sent?.paused ?? this.#isPaused
  }

  get reason(): Error | null {
    return this.#sent ? this.#sent.reason : ((this.#waiting.signal.reason as Error | undefined) ?? null)
  }

  get rawHeaders(): unknown {
    return this.#sent?.rawHeaders ?? null
  }

  get rawTrailers(): unknown {
    return this.#sent?.rawTrailers ?? null
  }

  abort(reason?: Error): void {
    // Without a reason, it is an AbortError.
    this.#waiting.abort(reason ?? undefined)
    this.#sent?.abort(reason as Error)
  }

  pause(): void {
    this.#isPaused = true
    this.#sent?.pause()
  }

  resume(): void {
    this.#isPaused = false
    this.#sent?.resume()
  }

  /** The request is sent: whoever controls it controls that. */
  sentBy(controller: Controller): void {
    this.#sent = controller
    if (this.#waiting.signal.aborted) controller.abort(this.#waiting.signal.reason as Error)
    else if (this.#isPaused) controller.pause()
  }
}
