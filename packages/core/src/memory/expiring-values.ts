import { KeyedValues } from './keyed-values.js'
import type { Usage } from './usage.js'

/** Values by key that end by themselves, with the bytes that they take. A circular walk removes ended values, a few at a time. */
export abstract class ExpiringValues<Value> {
  protected readonly byKey = new KeyedValues<Value>()
  protected readonly usage: Usage
  readonly #graceMs: number
  /** The position of the walk. */
  protected next = 0

  /** `graceMs`: the time that a value stays after its end, for clocks that may step back. */
  constructor(usage: Usage, graceMs: number) {
    this.usage = usage
    this.#graceMs = graceMs
  }

  /** When a value ends, in ms. */
  protected abstract endOf(value: Value): number
  protected abstract bytesOf(key: string, value: Value): number

  get size(): number {
    return this.byKey.size
  }

  /** The keys from the last to the first: a removal meanwhile skips none. */
  keys(): Generator<string> {
    return this.byKey.keys()
  }

  /** Visits up to `max` values, removes those that have ended, and returns the number of visits. */
  sweep(now: number, max: number): number {
    const visits = Math.min(max, this.size)
    for (let n = visits; n > 0; n--) {
      const value = this.visit()
      if (this.endOf(value) + this.#graceMs > now) this.next++
      else this.remove(this.byKey.keyAt(this.next), value)
    }
    return visits
  }

  /** The value at the position of the walk. */
  protected visit(): Value {
    if (this.next >= this.size) this.next = 0
    return this.byKey.at(this.next)
  }

  /** `before`: the current value of the key. */
  protected put(key: string, before: Value | undefined, value: Value): void {
    this.byKey.set(key, value)
    this.usage.add(0, this.bytesOf(key, value) - (before ? this.bytesOf(key, before) : 0))
  }

  protected remove(key: string, value: Value): void {
    this.byKey.delete(key)
    this.usage.add(0, -this.bytesOf(key, value))
  }
}
