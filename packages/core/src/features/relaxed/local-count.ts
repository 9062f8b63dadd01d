import type { ReplyReader } from '../../redis/scripts/reply-reader.js'
import { ChargesByWindow } from './charges-by-window.js'

/**
 * This process's count in one cell of one identity: Redis's last report plus the charges made here, by the same kernels
 * as in Redis. Charges are sent by the window or segment that counts them.
 *
 * Instants are by Redis's clock, which a process knows only approximately. `now` has certainly been reached, so windows
 * that end by then are over. `latest` may have been reached: charges are recorded as of then, so that every window that
 * may contain the charge counts it. With a user's clock, both are equal.
 */
export abstract class LocalCount {
  /**
   * Units charged close to the end of a window, which may belong to the next window, and the start or number of that
   * window.
   */
  protected nextCount = 0
  protected next = 0
  /** Charges made here that Redis's last report does not include. */
  protected unsent = new ChargesByWindow()

  /** Milliseconds until a cost has room: 0 now, -1 never. */
  abstract wait(cost: number, now: number): number
  /** Charges units that will be sent to Redis. */
  abstract charge(cost: number, now: number, latest: number): void
  /** Counts units requested from Redis meanwhile, which Redis counts itself. A negative cost takes them back. */
  abstract assume(cost: number, now: number): void
  /** Observes the receipt of a charge made by Redis. */
  observeReceipt?(receipt: number): void
  /** Refunds units of a charge that was made here. */
  abstract refund(cost: number, receipt: number, now: number): void
  /** Milliseconds until the count has no effect. */
  abstract resetAfter(now: number): number
  /** Units that have room. */
  protected abstract room(now: number): number
  /** The receipt of a charge made now, for its refund. */
  protected abstract get receipt(): number
  /** Reads Redis's report. */
  protected abstract read(reply: ReplyReader, now: number): void
  /** Counts units that were charged here, in the window of their charge. */
  protected abstract recount(window: number, units: number, now: number): void

  /** Appends the report of a limit; `need` is given for a refusal. */
  report(values: number[], now: number, need: number | undefined): void {
    const room = this.room(now)
    const reset = this.resetAfter(now)
    if (need === undefined) values.push(room, 0, reset, this.receipt)
    else values.push(room, this.wait(need, now), reset, this.wait(room + 1, now))
  }

  /** Continues from Redis's report, plus the charges that it lacks: those under way, and those not yet sent. */
  observe(reply: ReplyReader, now: number, underWay: readonly ChargesByWindow[]): void {
    this.nextCount = 0
    this.read(reply, now)
    for (const charges of [...underWay, this.unsent]) {
      charges.forEach((window, units) => {
        this.recount(window, units, now)
      })
    }
  }

  /** Refunds units where this process does not know what else is counted. */
  refundLater(cost: number, receipt: number): void {
    this.unsent.add(receipt, -cost)
  }

  /** Whether there are unsent charges. */
  get hasUnsent(): boolean {
    return !this.unsent.isEmpty
  }

  /** Takes the unsent charges. */
  takeUnsent(): ChargesByWindow {
    const taken = this.unsent
    this.unsent = new ChargesByWindow()
    return taken
  }

  /** Puts back charges that were not sent. */
  putBack(sent: ChargesByWindow): void {
    sent.forEach((window, units) => {
      this.unsent.add(window, units)
    })
  }

  protected noteNext(window: number, units: number): void {
    if (this.nextCount === 0) this.next = window
    this.nextCount = Math.max(0, this.nextCount + units)
  }
}
