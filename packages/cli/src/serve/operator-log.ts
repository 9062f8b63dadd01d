import type { Output } from '../program/environment.js'

const AGAIN_AFTER_MS = 60_000

/** Tells the operator what goes wrong: each kind once a minute, or those who cause it would fill the log. */
export class OperatorLog {
  readonly #output: Output
  readonly #toldAt = new Map<string, number>()

  constructor(output: Output) {
    this.#output = output
  }

  /** `kind`: one of a few, never what a caller sent. */
  tell(kind: string, message: string): void {
    const now = performance.now()
    const last = this.#toldAt.get(kind)
    if (last !== undefined && now - last < AGAIN_AFTER_MS) return
    this.#toldAt.set(kind, now)
    // Nothing in it steers a terminal.
    this.#output.write(`sluice: ${message.replace(/[^\x20-\x7e\n]/g, '?')} (told once a minute)\n`)
  }
}
