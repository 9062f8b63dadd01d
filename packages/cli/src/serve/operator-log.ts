import type { Output } from '../program/environment.js'

const AGAIN_AFTER_MS = 60_000

/** Warns the operator of what goes wrong: each kind once a minute, or its cause could fill the log. */
export class OperatorLog {
  readonly #output: Output
  readonly #warnedAt = new Map<string, number>()

  constructor(output: Output) {
    this.#output = output
  }

  /** `kind`: one of a few, never what a caller sent. */
  warn(kind: string, message: string): void {
    const now = performance.now()
    const last = this.#warnedAt.get(kind)
    if (last !== undefined && now - last < AGAIN_AFTER_MS) return
    this.#warnedAt.set(kind, now)
    // Nothing in it steers a terminal.
    this.#output.write(`sluice: ${message.replace(/[^\x20-\x7e\n]/g, '?')} (reported once a minute)\n`)
  }
}
