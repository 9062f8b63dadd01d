import type { ServerResponse } from 'node:http'

/** Interval in ms at which the operator of a stream is asked for again. */
const ASK_EVERY_MS = 60_000
/** The life of a stream in ms. */
const LIFE_MS = 3_600_000
/** A client that takes nothing for as long is gone, in ms. */
const BEHIND_MS = 30_000
/** The time for a client to take the last line, in ms. */
const LAST_MS = 5000

/** One who reads a stream. While it does not take what was sent, it gets nothing more: little is held for it. */
export class Listener {
  readonly operator: string
  readonly #response: ServerResponse
  readonly #ask: () => Promise<unknown>
  readonly #endsAt = performance.now() + LIFE_MS
  #asksAt = performance.now() + ASK_EVERY_MS
  #behindSince: number | undefined
  #isEnded = false

  /** @param ask rejects where the operator may not read any more */
  constructor(response: ServerResponse, operator: string, ask: () => Promise<unknown>) {
    this.#response = response
    this.operator = operator
    this.#ask = ask
  }

  get isOver(): boolean {
    return performance.now() >= this.#endsAt
  }

  send(line: Buffer): void {
    if (this.#isEnded) return
    if (this.#behindSince !== undefined) {
      if (performance.now() - this.#behindSince >= BEHIND_MS) this.#destroy()
      return
    }
    if (this.#response.write(line)) return
    this.#behindSince = performance.now()
    this.#response.once('drain', () => {
      this.#behindSince = undefined
    })
  }

  /** Resolves to whether the operator may read on, and is asked for again where it is time. */
  async mayGoOn(): Promise<boolean> {
    if (performance.now() < this.#asksAt) return true
    this.#asksAt = Number.POSITIVE_INFINITY
    try {
      await this.#ask()
      this.#asksAt = performance.now() + ASK_EVERY_MS
      return true
    } catch {
      return false
    }
  }

  end(line: Buffer): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#response.end(line)
    setTimeout(() => this.#destroy(), LAST_MS).unref()
  }

  #destroy(): void {
    this.#isEnded = true
    this.#response.destroy()
  }
}
