import type { Timeline } from '../report.js'

const MAX_STEPS = 500
const PEAKS = 5
/** Lengths of a step, in ms: such as people read on a clock. Each divides the next, as merged steps lie within one longer step. */
const LENGTHS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400].map((s) => s * 1000)

/** Requests over time, in steps that grow with the log: memory is bounded. */
export class TimelineCounts {
  /** The index of the length of a step, and that length. */
  #length = 0
  #stepMs = LENGTHS[0] as number
  #from = Number.NaN
  #admitted: number[] = []
  #refused: number[] = []

  count(at: number, isRefused: boolean): void {
    const step = this.#stepOf(at)
    const counts = isRefused ? this.#refused : this.#admitted
    counts[step] = (counts[step] as number) + 1
  }

  #stepOf(at: number): number {
    if (Number.isNaN(this.#from)) this.#from = Math.floor(at / this.#stepMs) * this.#stepMs
    // A line out of order counts in the first step.
    let step = Math.max(0, Math.floor((at - this.#from) / this.#stepMs))
    while (step >= MAX_STEPS) {
      this.#lengthen()
      step = Math.max(0, Math.floor((at - this.#from) / this.#stepMs))
    }
    while (this.#admitted.length <= step) {
      this.#admitted.push(0)
      this.#refused.push(0)
    }
    return step
  }

  #lengthen(): void {
    this.#length++
    const before = this.#stepMs
    const from = this.#from
    this.#stepMs = LENGTHS[this.#length] ?? before * 2
    this.#from = Math.floor(from / this.#stepMs) * this.#stepMs
    const merged = (counts: readonly number[]) => {
      const longer: number[] = []
      for (const [i, count] of counts.entries()) {
        const step = Math.floor((from + i * before - this.#from) / this.#stepMs)
        while (longer.length <= step) longer.push(0)
        longer[step] = (longer[step] as number) + count
      }
      return longer
    }
    this.#admitted = merged(this.#admitted)
    this.#refused = merged(this.#refused)
  }

  report(): Timeline {
    const steps = this.#admitted.map((admitted, i) => {
      const refused = this.#refused[i] as number
      return { atMs: this.#from + i * this.#stepMs, requests: admitted + refused, refused }
    })
    return {
      stepMs: this.#stepMs,
      fromMs: Number.isNaN(this.#from) ? 0 : this.#from,
      admitted: this.#admitted,
      refused: this.#refused,
      peaks: steps.sort((a, b) => b.requests - a.requests).slice(0, PEAKS),
    }
  }
}
