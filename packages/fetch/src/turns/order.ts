import { SluiceError } from '@sluice/core'
import { FairQueue, pause, type QueueTurn } from '@sluice/core/internal'
import type { Progress } from './progress.js'
import type { TurnOptions } from './turn.js'

/** Waiting for as long raises a request by one priority, as in `acquire`. */
const AGE_EVERY_MS = 2000

/**
 * The order of the requests of one key in this process: one of them is first, and the others wait for it to leave, by priority and
 * fair turns.
 */
export class Order {
  readonly #queue = new FairQueue()
  #hasFirst = false

  /** Resolves to a function that leaves. @throws SluiceError `WAIT_EXCEEDED`; the reason of the signal */
  async enter(options: TurnOptions, progress: Progress): Promise<() => void> {
    options.signal?.throwIfAborted()
    if (this.#hasFirst) await this.#wait(options, progress)
    this.#hasFirst = true
    let isIn = true
    return () => {
      if (isIn) this.#leave()
      isIn = false
    }
  }

  async #wait({ signal, priority = 0, fairBy }: TurnOptions, progress: Progress): Promise<void> {
    progress.start()
    const headStartMs = priority * AGE_EVERY_MS
    const turn: QueueTurn = {
      cost: 1,
      headStartMs,
      since: performance.now() - headStartMs,
      client: fairBy,
      wake: undefined,
      isDisplaced: false,
    }
    this.#queue.add(turn)
    try {
      while (progress.leftMs > 0) {
        await pause(progress.leftMs, signal, (wake) => {
          turn.wake = wake
          return () => {}
        })
        if (turn.wake === undefined) return
      }
    } catch (error) {
      // It may have become the first one while its abort was on the way: nobody else would leave for it.
      if (!this.#queue.remove(turn, false)) this.#leave()
      throw error
    }
    this.#queue.remove(turn, false)
    throw new SluiceError('WAIT_EXCEEDED', 'others come before it')
  }

  /** The next one is first, before any that comes later. */
  #leave(): void {
    const { first } = this.#queue
    this.#hasFirst = first !== undefined
    if (!first) return
    this.#queue.remove(first, true)
    const { wake } = first
    first.wake = undefined
    wake?.()
  }
}
