/**
 * Commands that wait to be sent on a connection. They are sent together at the end of this turn of the event loop, or
 * before a command that must not overtake them. They are sent in order, except for charges that decisions must find in
 * Redis: those go first, as all decisions of a turn are one script.
 */
export class Outbox {
  #first: ((order: number) => void)[] = []
  #due: (() => void)[] = []
  #isScheduled = false
  #sends = 0

  /** The position of a command sent now, in the order of all that is sent. */
  get order(): number {
    return 2 * this.#sends
  }

  /** The position of the waiting commands in the same order: after those that go first. */
  get orderOfDue(): number {
    return this.order + 1
  }

  add(send: () => void): void {
    this.#due.push(send)
    this.#schedule()
  }

  /** `send` is called with its position in the order. */
  addFirst(send: (order: number) => void): void {
    this.#first.push(send)
    this.#schedule()
  }

  /** Sends the commands that go first, before a command that cannot wait for the others. */
  sendFirst(): void {
    const first = this.#first
    const { order } = this
    this.#sends++
    if (first.length === 0) return
    this.#first = []
    for (const send of first) send(order)
  }

  /** Sends all waiting commands. */
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
