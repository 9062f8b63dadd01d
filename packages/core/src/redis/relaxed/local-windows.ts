import type { ReplyReader } from '../scripts/reply-reader.js'
import { ChargesByWindow } from './charges-by-window.js'
import type { LocalCount } from './local-count.js'

/** What windows and windows of segments have in common: charges are sent by the window, or segment, that they count in. */
export abstract class LocalWindows implements LocalCount<ChargesByWindow> {
  /** Charged close to the end of a window: perhaps in the next one, which starts then. */
  protected nextCount = 0
  protected next = 0
  protected unsent = new ChargesByWindow()

  get refunded(): number {
    return 0
  }

  get hasUnsent(): boolean {
    return !this.unsent.isEmpty
  }

  chargeRefusal(cost: number, now: number, latest: number): void {
    this.charge(cost, now, latest)
  }

  takeUnsent(): ChargesByWindow {
    const taken = this.unsent
    this.unsent = new ChargesByWindow()
    return taken
  }

  putBack(sent: ChargesByWindow): void {
    this.unsent.addEarlier(sent)
  }

  protected noteNext(window: number, units: number): void {
    if (this.nextCount === 0) this.next = window
    this.nextCount = Math.max(0, this.nextCount + units)
  }

  abstract wait(cost: number, now: number): number
  abstract charge(cost: number, now: number, latest: number): void
  abstract assume(cost: number, now: number): void
  abstract refund(cost: number, receipt: number, before: number, chargedAt: number, now: number): void
  abstract report(values: number[], now: number, need: number | undefined): void
  abstract resetAfter(now: number): number
  abstract hear(reply: ReplyReader, saidAt: number, now: number, underWay: readonly ChargesByWindow[]): void
}
