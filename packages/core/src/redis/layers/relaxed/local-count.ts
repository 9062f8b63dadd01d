import type { ReplyReader } from '../../scripts/reply-reader.js'
import { ChargesByWindow } from './charges-by-window.js'

/**
 * What this process counts in one cell of one identity: what Redis said last, and on top what was charged here, by the
 * kernels that Redis decides by. Charges are sent by the window, or segment, that they count in.
 *
 * Instants are of Redis's clock, of which a process knows a little less than it needs. `now` has surely come: what
 * turns by then, has. `latest` may have come: so a charge is noted as of then, and no window that it may have been in
 * misses it. With a user's clock both are the same.
 */
export abstract class LocalCount {
  /** Charged close to the end of a window: perhaps in the next one, which starts then. */
  protected nextCount = 0
  protected next = 0
  /** What was charged here and is not in what Redis has said. */
  protected unsent = new ChargesByWindow()

  /** Milliseconds until a cost has room: 0 now, -1 never. */
  abstract wait(cost: number, now: number): number
  /** Charges what is to be sent to Redis. */
  abstract charge(cost: number, now: number, latest: number): void
  /** Counts (or with a negative cost takes back) what Redis has been asked for meanwhile, and counts itself. */
  abstract assume(cost: number, now: number): void
  /** Takes the receipt of a charge that Redis has made. */
  observeReceipt?(receipt: number): void
  /** Refunds units of a charge that was made here. */
  abstract refund(cost: number, receipt: number, now: number): void
  /** Milliseconds until it is as good as new. */
  abstract resetAfter(now: number): number
  /** Units that have room. */
  protected abstract room(now: number): number
  /** What a refund of a charge that is made now needs. */
  protected abstract get receipt(): number
  /** Takes what Redis has said. */
  protected abstract read(reply: ReplyReader, now: number): void
  /** Counts units that were charged here, in the window that they were charged in. */
  protected abstract recount(window: number, units: number, now: number): void

  /** Appends what a limit reports; `need` where it was refused. */
  report(values: number[], now: number, need: number | undefined): void {
    const room = this.room(now)
    const reset = this.resetAfter(now)
    if (need === undefined) values.push(room, 0, reset, this.receipt)
    else values.push(room, this.wait(need, now), reset, this.wait(room + 1, now))
  }

  /** Goes on from what Redis has said, with what it did not know: what is under way, and what is still to be sent. */
  observe(reply: ReplyReader, now: number, underWay: readonly ChargesByWindow[]): void {
    this.nextCount = 0
    this.read(reply, now)
    for (const charges of [...underWay, this.unsent]) {
      charges.forEach((window, units) => {
        this.recount(window, units, now)
      })
    }
  }

  /** Whether there is anything to send. */
  get hasUnsent(): boolean {
    return !this.unsent.isEmpty
  }

  /** Takes what there is to send. */
  takeUnsent(): ChargesByWindow {
    const taken = this.unsent
    this.unsent = new ChargesByWindow()
    return taken
  }

  /** Puts back what was not sent. */
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
