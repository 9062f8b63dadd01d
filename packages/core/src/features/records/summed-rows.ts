import { OTHER } from '../../metrics/policy-counts.js'
import { commonCapacity } from '../../metrics/use-counts.js'

type Row = [policy: string, limit: string, numbers: readonly number[], size: number]

/** Rows of numbers by policy and limit, which are added up. Those for which there is no room are one row, `other`. */
export class SummedRows {
  readonly #max: number
  readonly #rows = new Map<string, Row>()

  /** @param max rows, with that of the others */
  constructor(max: number) {
    this.#max = max
  }

  /**
   * @param limit '' in rows of policies
   * @param size of the limit; `RESIZED` in a row whose limits differ in it, 0 if one has none
   */
  add(policy: string, limit: string, numbers: readonly number[], size = 0): void {
    const hasRoom = this.#rows.has(keyOf(policy, limit)) || this.#rows.size < this.#max - 1
    if (hasRoom) this.#addTo(policy, limit, numbers, size)
    else this.#addTo(OTHER, limit && OTHER, numbers, 0)
  }

  /** In the order in which they came. */
  read(): readonly Row[] {
    return [...this.#rows.values()]
  }

  #addTo(policy: string, limit: string, numbers: readonly number[], size: number): void {
    const key = keyOf(policy, limit)
    const before = this.#rows.get(key)
    const sums = before?.[2].map((sum, i) => sum + (numbers[i] as number)) ?? numbers
    this.#rows.set(key, [policy, limit, sums, before === undefined ? size : commonCapacity(before[3], size)])
  }
}

function keyOf(policy: string, limit: string): string {
  return `${policy}|${limit}`
}
