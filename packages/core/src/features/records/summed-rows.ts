import { OTHER } from '../../metrics/policy-counts.js'

type Row = [policy: string, limit: string, numbers: readonly number[]]

/** Rows of numbers by policy and limit, which are added up. Those for which there is no room are one row, `other`. */
export class SummedRows {
  readonly #max: number
  readonly #rows = new Map<string, Row>()

  /** @param max rows, with that of the others */
  constructor(max: number) {
    this.#max = max
  }

  /** `limit`: '' in rows of policies. */
  add(policy: string, limit: string, numbers: readonly number[]): void {
    const hasRoom = this.#rows.has(keyOf(policy, limit)) || this.#rows.size < this.#max - 1
    if (hasRoom) this.#addTo(policy, limit, numbers)
    else this.#addTo(OTHER, limit && OTHER, numbers)
  }

  /** In the order in which they came. */
  read(): readonly Row[] {
    return [...this.#rows.values()]
  }

  #addTo(policy: string, limit: string, numbers: readonly number[]): void {
    const key = keyOf(policy, limit)
    const before = this.#rows.get(key)?.[2]
    this.#rows.set(key, [policy, limit, before?.map((sum, i) => sum + (numbers[i] as number)) ?? numbers])
  }
}

function keyOf(policy: string, limit: string): string {
  return `${policy}|${limit}`
}
