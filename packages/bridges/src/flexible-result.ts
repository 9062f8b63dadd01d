/** The result of a call of rate-limiter-flexible. */
export class FlexibleResult {
  readonly remainingPoints: number
  /** Until a refused call would be admitted, or until an admitted key is as good as new. -1: never. */
  readonly msBeforeNext: number
  readonly consumedPoints: number
  readonly isFirstInDuration: boolean

  constructor(remainingPoints: number, msBeforeNext: number, consumedPoints: number, isFirstInDuration: boolean) {
    this.remainingPoints = remainingPoints
    this.msBeforeNext = msBeforeNext
    this.consumedPoints = consumedPoints
    this.isFirstInDuration = isFirstInDuration
  }

  toJSON(): object {
    return { ...this }
  }

  toString(): string {
    return JSON.stringify(this)
  }
}
