import type { Connection } from '../clients/connection.js'
import { readKeys, run } from '../scripts/run.js'
import { markWaitingScript } from '../scripts/scripts.generated.js'
import { ASSUME_UNWAITED_MS, type UnwaitedQueues } from './unwaited-queues.js'

/** Before what was seen is out of date, so that under a steady load it is always known. */
const LOOK_EVERY_MS = 0.6 * ASSUME_UNWAITED_MS
/** A marker is set again once less than this share of its time is left. */
const RENEWED_FROM = 0.7

/**
 * The key that is there while a request waits for its turn across processes, in a cluster: there no script can look for it beside
 * other keys, as it is on a slot of its own. So commands of their own set it and look for it, now and then, and decisions
 * look for no record while none waits. Where it cannot be asked for, they do.
 */
export class ClusterWaitingMarker {
  readonly #connection: Connection
  readonly #key: string
  readonly #timeoutMs: number
  readonly #unwaited: UnwaitedQueues
  /** By the performance clock. */
  #nextLookAt = 0
  #endsAt = 0

  constructor(connection: Connection, key: string, timeoutMs: number, unwaited: UnwaitedQueues) {
    this.#connection = connection
    this.#key = key
    this.#timeoutMs = timeoutMs
    this.#unwaited = unwaited
  }

  /** Looks for it, if the last time is some time ago: for later decisions. */
  look(): void {
    const now = performance.now()
    if (now < this.#nextLookAt) return
    this.#nextLookAt = now + LOOK_EVERY_MS
    readKeys(this.#connection, this.#timeoutMs, [this.#key]).then(
      ([marker]) => {
        if (marker) this.#unwaited.delete(this.#key)
        else this.#unwaited.add(this.#key, now)
      },
      () => {},
    )
  }

  /** Sets it, if it does not last for most of this time anyway. */
  set(ttlMs: number): void {
    const now = performance.now()
    if (this.#endsAt - now > RENEWED_FROM * ttlMs) return
    this.#endsAt = now + ttlMs
    const encoded = () => ({ keys: [this.#key], args: [String(ttlMs)] })
    run(this.#connection, this.#timeoutMs, markWaitingScript, encoded).catch(() => {
      this.#endsAt = 0
    })
  }
}
