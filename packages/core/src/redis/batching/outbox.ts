/**
 * What waits to be sent on a connection: until the end of this turn of the event loop, so that it goes together, or until
 * something is sent that must not overtake it. Goes in the order in which it was asked for, but for charges that decisions
 * have to find in Redis: they go first, as all decisions of a turn are one script.
 */
export class Outbox {
  #first: ((order: number) => void)[] = []
  #due: (() => void)[] = []
  #isScheduled = false
  #sends = 0

  /** When what is sent now is, in the order of all that is sent. */
  get order(): number {
    return 2 * this.#sends
  }

  /** When what waits is sent, in the same order: after what goes first. */
  get orderOfDue(): number {
    return this.order + 1
  }

  add(send: () => void): void {
    this.#due.push(send)
    this.#schedule()
  }

  /** `send` is called with its order. */
  addFirst(send: (order: number) => void): void {
    this.#first.push(send)
    this.#schedule()
  }

  /** Sends what goes first, for something that cannot wait for the others. */
  sendFirst(): void {
    const first = this.#first
    const { order } = this
    this.#sends++
    if (first.length === 0) return
    this.#first = []
    for (const send of first) send(order)
  }

  /** Sends all that waits. */
  readonly flush = (): void => {
    this.#isScheduled = false
    this.sendFirst()
    const due = this.#due
    if (due.length === 0) return
    this.#due = []
    for (const send of due) send()
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.flush)
  }
}
