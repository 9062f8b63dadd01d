import type { Transform } from 'node:stream'
import type { TransformStream } from 'node:stream/web'

export interface MeterOptions {
  /**
   * Units that are charged together, 1 or more; at most the smallest capacity of the limits.
   *
   * A stream may exceed a limit by a step and what is produced while one charge is under way.
   * @default 64
   */
  readonly step?: number
  /**
   * The end of a stream that uses up a limit: `'cut'` or `'finish'`.
   *
   * `'cut'` has `add` resolve to false, `'finish'` lets it go on beyond the limit.
   * @default 'cut'
   */
  readonly onExhausted?: 'cut' | 'finish'
}

/**
 * Charges the units of one request while they are produced, such as the tokens of a model's response. First each limit uses up what
 * the request was charged there as an estimate. Then steps are charged: all of a step or, where a limit has no room, none.
 */
export interface Meter {
  /** Units added so far. */
  readonly used: number
  /**
   * Adds units. Resolves to whether to go on; false once a limit is used up, or the meter has ended. Waits only where a whole step
   * has come while another one is charged.
   *
   * @throws SluiceError `INVALID_COST` for what is no whole number of at least 0
   */
  add(units: number): Promise<boolean>
  /** A web stream that adds the units of each chunk, ends after the last one that has room, and ends the meter. */
  stream<Chunk>(count: (chunk: Chunk) => number): TransformStream<Chunk, Chunk>
  /** The same for Node's streams. After the end of the units, chunks that still come are dropped. */
  nodeStream(count: (chunk: never) => number): Transform
  /**
   * Charges the rest as far as there is room, and refunds what is left of the estimate. The first of `end`, `verdict.settle` of the unit and a refund
   * counts; the second does nothing. Call it in `finally`.
   */
  end(): Promise<void>
}
