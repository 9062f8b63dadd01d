import ipaddr from 'ipaddr.js'

/** An address as bytes; IPv4-mapped IPv6 addresses count as IPv4. Undefined where it is none. */
export function bytesOf(address: string): readonly number[] | undefined {
  return ipaddr.isValid(address) ? ipaddr.process(address).toByteArray() : undefined
}

/** An address or a range, `192.0.2.0/24`, read; undefined where it is none. */
export function rangeOf(text: string): { readonly bytes: readonly number[]; readonly bits: number } | undefined {
  const [address = '', prefix, ...others] = text.split('/')
  // IPv4 in four parts alone: other libraries read 192.168 and 0x7f.1 in ways of their own.
  if (others.length > 0 || (!address.includes(':') && !ipaddr.IPv4.isValidFourPartDecimal(address))) return undefined
  const bytes = bytesOf(address)
  if (!bytes) return undefined
  const most = 8 * bytes.length
  if (prefix === undefined) return { bytes, bits: most }
  const bits = /^[0-9]{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
  return bits <= most && bytes.length === (address.includes(':') ? 16 : 4) ? { bytes, bits } : undefined
}

/** Values by ranges of addresses; the smallest range that has an address, and whose value holds, counts. */
export class RangeMap<Value> {
  /** By family and length of the prefix, longest first. */
  #tables: { readonly bytes: number; readonly bits: number; readonly values: Map<string, Value> }[] = []

  /** Whether it was free. */
  add({ bytes, bits }: NonNullable<ReturnType<typeof rangeOf>>, value: Value): boolean {
    let table = this.#tables.find((each) => each.bytes === bytes.length && each.bits === bits)
    if (!table) {
      table = { bytes: bytes.length, bits, values: new Map() }
      this.#tables.push(table)
      this.#tables.sort((a, b) => b.bits - a.bits)
    }
    const key = keyOf(bytes, bits)
    if (table.values.has(key)) return false
    table.values.set(key, value)
    return true
  }

  find(address: string | undefined, holds: (value: Value) => boolean): Value | undefined {
    if (this.#tables.length === 0 || address === undefined) return undefined
    const bytes = bytesOf(address)
    if (!bytes) return undefined
    for (const table of this.#tables) {
      if (table.bytes !== bytes.length) continue
      const value = table.values.get(keyOf(bytes, table.bits))
      if (value !== undefined && holds(value)) return value
    }
    return undefined
  }
}

/** The leading bits of an address, as a text. */
function keyOf(bytes: readonly number[], bits: number): string {
  let key = ''
  for (let i = 0; 8 * i < bits; i++) {
    const unused = Math.max(0, 8 * (i + 1) - bits)
    key += String.fromCharCode((bytes[i] as number) & (0xff << unused) & 0xff)
  }
  return key
}
