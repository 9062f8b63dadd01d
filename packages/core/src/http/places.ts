import type { Limiter } from '../limiter.js'
import { LONGEST_TIMER_MS } from '../pause.js'
import type { Verdict } from '../verdict.js'
import { isOver, type RawResponse } from './context.js'

/**
 * The places in `concurrency` limits that requests of one guard hold: freed once, when the response
 * is finished or the client has left, and renewed for as long as that takes.
 */
export class Places {
  readonly #limiter: Pick<Limiter, 'release' | 'renew'>
  readonly #renewEveryMs: number
  readonly #held = new Set<Verdict>()
  #timer: NodeJS.Timeout | undefined

  /** `ttlMs`: the shortest time for which a place is held without being renewed. */
  constructor(limiter: Pick<Limiter, 'release' | 'renew'>, ttlMs: number) {
    this.#limiter = limiter
    this.#renewEveryMs = Math.min(Math.max(1, Math.floor(ttlMs / 3)), LONGEST_TIMER_MS)
  }

  hold(verdict: Verdict, response: RawResponse): void {
    const free = () => {
      response.removeListener('finish', free)
      response.removeListener('close', free)
      this.#free(verdict)
    }
    this.#held.add(verdict)
    if (isOver(response)) {
      this.#free(verdict)
      return
    }
    // An answer that is sent emits both, one that is cut off only `close`.
    response.on('finish', free)
    response.on('close', free)
    this.#timer ??= setInterval(() => this.#renew(), this.#renewEveryMs).unref()
  }

  #free(verdict: Verdict): void {
    this.#held.delete(verdict)
    if (this.#held.size === 0) {
      clearInterval(this.#timer)
      this.#timer = undefined
    }
    this.#limiter.release(verdict).catch(lapses)
  }

  #renew(): void {
    for (const verdict of this.#held) this.#limiter.renew(verdict).catch(lapses)
  }
}

/** A place that the store cannot be told about lapses by itself after its `ttl`: nobody has to hear of it. */
function lapses(): void {}
