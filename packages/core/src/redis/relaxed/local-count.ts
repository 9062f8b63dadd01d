import type { ReplyReader } from '../scripts/reply-reader.js'

/** What was charged here and is not in what Redis has said: as much as one exchange carries. */
export interface Unsent {
  readonly isEmpty: boolean
  /** What lua/exchange.lua takes of it, after how many texts that is. */
  push(args: string[]): void
  /** Takes back an earlier exchange that was never sent. */
  addEarlier(earlier: this): void
}

/**
 * What this process counts in one cell of one identity: what Redis said last, and on top what was charged here. By the
 * kernels that Redis decides by.
 *
 * Instants are of Redis's clock, of which a process knows a little less than it needs. `now` has surely come: what drains
 * or turns by then, has. `latest` may have come: so a charge is noted as of then, and no window that it may have been in
 * misses it. With a user's clock both are the same.
 */
export interface LocalCount<Sent extends Unsent = Unsent> {
  /** Milliseconds until a cost has room: 0 now, -1 never. */
  wait(cost: number, now: number): number
  /** Charges what is to be sent to Redis. */
  charge(cost: number, now: number, latest: number): void
  /** Charges a refusal, as far as the limit holds it. */
  chargeRefusal(cost: number, now: number, latest: number): void
  /** Counts (or with a negative cost takes back) what Redis has been asked for meanwhile, and counts itself. */
  assume(cost: number, now: number): void
  /** Takes the receipt of a charge that Redis has made. */
  hearReceipt?(receipt: number): void
  /** Refunds units of a charge that was made here. */
  refund(cost: number, receipt: number, before: number, chargedAt: number, now: number): void
  /** How much was refunded so far, for receipts. */
  readonly refunded: number
  /** Appends what a limit reports; `need` where it was refused. */
  report(values: number[], now: number, need: number | undefined): void
  /** Milliseconds until it is as good as new. */
  resetAfter(now: number): number
  /** Whether there is anything to send. */
  readonly hasUnsent: boolean
  /** Takes what there is to send. */
  takeUnsent(): Sent
  /** Puts back what was not sent. */
  putBack(sent: Sent): void
  /**
   * Goes on from what Redis said at an instant, `saidAt`, with what it did not know: what is under way, and what is still
   * to be sent.
   */
  hear(reply: ReplyReader, saidAt: number, now: number, underWay: readonly Sent[]): void
}
