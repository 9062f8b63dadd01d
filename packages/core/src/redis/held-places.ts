import {
  type Answer,
  type Ask,
  CHARGE,
  CONSUME,
  type Op,
  REFUND,
  RELEASE,
  RENEW,
  type ResolvedLimit,
} from '../store.js'

interface Held {
  readonly ask: Ask
  readonly answer: Answer
  readonly slot: number
  /** When it lapses, by the performance clock. */
  until: number
}

/** Looked at with each new one, so that those which lapsed without a word are forgotten. */
const SWEPT_PER_PLACE = 2

/** The places in `concurrency` limits that this process holds, to be freed when the store is closed. */
export class HeldPlaces {
  readonly #held = new Map<string, Held>()
  #walk = this.#held.entries()

  /** Hears of every answer to an ask with a lease. */
  heard(ask: Ask, answer: Answer, slot: number): void {
    const id = `${slot} ${ask.lease}`
    const { op } = ask
    if (takesPlaces(op)) {
      if (!answer.allowed) return
      this.#sweep()
      this.#held.set(id, { ask, answer, slot, until: performance.now() + ttlOf(ask) })
    } else if (op === RELEASE || (op === REFUND && isWhole(ask, this.#held.get(id)?.ask))) this.#held.delete(id)
    else if (op === RENEW) {
      const held = this.#held.get(id)
      if (held) held.until = performance.now() + ttlOf(ask)
    }
  }

  /** What frees all that is held, by slot. */
  takeAll(): { ask: Ask; slot: number }[] {
    const all = [...this.#held.values()]
    this.#held.clear()
    return all.map(({ ask, answer, slot }) => ({ ask: { ...ask, op: RELEASE, charge: answer } as const, slot }))
  }

  #sweep(): void {
    const now = performance.now()
    for (let n = 0; n < SWEPT_PER_PLACE; n++) {
      let step = this.#walk.next()
      if (step.done) {
        this.#walk = this.#held.entries()
        step = this.#walk.next()
        if (step.done) return
      }
      const [id, { until }] = step.value
      if (until <= now) this.#held.delete(id)
    }
  }
}

function takesPlaces(op: Op): boolean {
  return op === CONSUME || op === CHARGE
}

function ttlOf({ plan }: Ask): number {
  let ttlMs = 0
  for (const { kernel, limits } of plan.cells) {
    if (kernel === 'concurrency') ttlMs = Math.max(ttlMs, (limits[0] as ResolvedLimit).windowMs)
  }
  return ttlMs
}

function isWhole({ costs }: Ask, taken: Ask | undefined): boolean {
  return taken?.costs.every((cost, c) => cost === costs[c]) ?? true
}
