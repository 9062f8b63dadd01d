import type { IpRange } from './ip-address.js'
import { RangeTree } from './range-tree.js'

/** Values by ranges of addresses, which may overlap: the smallest range that has an address counts, whatever its form. */
export class RangeMap<Value> {
  readonly #v4 = { tree: new RangeTree(1), values: [undefined] as (Value | undefined)[] }
  readonly #v6 = { tree: new RangeTree(4), values: [undefined] as (Value | undefined)[] }
  #size = 0

  get size(): number {
    return this.#size
  }

  get(range: IpRange): Value | undefined {
    const { tree, values } = range.isIPv4 ? this.#v4 : this.#v6
    return values[tree.get(range)]
  }

  set(range: IpRange, value: Value): void {
    const { tree, values } = range.isIPv4 ? this.#v4 : this.#v6
    const number = tree.add(range)
    if (values[number] === undefined) this.#size++
    values[number] = value
  }

  delete(range: IpRange): void {
    const { tree, values } = range.isIPv4 ? this.#v4 : this.#v6
    const number = tree.delete(range)
    if (number === 0) return
    this.#size--
    values[number] = undefined
  }

  /**
   * The value of the smallest range that has all addresses of another, and whose value holds. `holds` is called in no order,
   * with the values of ranges that are smaller than the best so far.
   */
  find(range: IpRange, holds: (value: Value) => boolean): Value | undefined {
    if (this.#size === 0) return undefined
    const { tree, values } = range.isIPv4 ? this.#v4 : this.#v6
    return values[tree.find(range, values as Value[], holds)]
  }
}
