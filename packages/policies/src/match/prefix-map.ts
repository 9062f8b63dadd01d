/** Values by the start of a text; the longest start whose value holds counts. */
export class PrefixMap<Value> {
  /** By length, longest first. */
  #tables: { readonly length: number; readonly values: Map<string, Value> }[] = []

  /** Whether it was free. */
  add(prefix: string, value: Value): boolean {
    let table = this.#tables.find(({ length }) => length === prefix.length)
    if (!table) {
      table = { length: prefix.length, values: new Map() }
      this.#tables.push(table)
      this.#tables.sort((a, b) => b.length - a.length)
    }
    if (table.values.has(prefix)) return false
    table.values.set(prefix, value)
    return true
  }

  find(text: string, holds: (value: Value) => boolean): Value | undefined {
    for (const { length, values } of this.#tables) {
      if (length > text.length) continue
      const value = values.get(text.slice(0, length))
      if (value !== undefined && holds(value)) return value
    }
    return undefined
  }
}
