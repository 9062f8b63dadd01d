import { KeyedRows, NONE, SHELF_BITS } from '@sluice/core/internal'

const FIRST_SLOTS = 1024

/**
 * Numbers texts in the order in which they come. IPv4 addresses, which nearly all clients of logs are, are held as numbers: a
 * look-up touches one place in memory, where a table of texts touches four.
 */
export class RowIndex {
  /** Number of texts. */
  size = 0
  /** The address of each row. Rows of other texts are in `#texts`. */
  #addresses = new Uint32Array(FIRST_SLOTS)
  /** Pairs of an address and its row, which counts from 1: 0 is empty. */
  #slots = new Uint32Array(2 * FIRST_SLOTS)
  #inSlots = 0
  readonly #texts = new KeyedRows()
  /** The rows of other texts, in the order of `#texts`, and these by row. */
  readonly #rows: number[] = []
  readonly #numberOf = new Map<number, number>()

  rowOf(text: string): number {
    const address = addressIn(text)
    return address < 0 ? this.#rowOfText(text) : this.#rowOfAddress(address)
  }

  nameOf(row: number): string {
    const number = this.#numberOf.get(row)
    if (number !== undefined) return this.#texts.keyOf(number << SHELF_BITS)
    const address = this.#addresses[row] as number
    return `${address >>> 24}.${(address >>> 16) & 255}.${(address >>> 8) & 255}.${address & 255}`
  }

  #rowOfText(text: string): number {
    const ref = this.#texts.find(text)
    if (ref !== NONE) return this.#rows[ref >>> SHELF_BITS] as number
    const number = this.#texts.add(text, 0, 0) >>> SHELF_BITS
    const row = this.#add(0)
    this.#rows[number] = row
    this.#numberOf.set(row, number)
    return row
  }

  #rowOfAddress(address: number): number {
    const slots = this.#slots
    const mask = slots.length / 2 - 1
    for (let slot = hashOf(address) & mask; ; slot = (slot + 1) & mask) {
      const row = slots[2 * slot + 1] as number
      if (row === 0) break
      if (slots[2 * slot] === address) return row - 1
    }
    const row = this.#add(address)
    if (++this.#inSlots > slots.length / 4) this.#grow()
    this.#put(address, row)
    return row
  }

  #add(address: number): number {
    if (this.size === this.#addresses.length) {
      const more = new Uint32Array(2 * this.size)
      more.set(this.#addresses)
      this.#addresses = more
    }
    this.#addresses[this.size] = address
    return this.size++
  }

  #put(address: number, row: number): void {
    const slots = this.#slots
    const mask = slots.length / 2 - 1
    let slot = hashOf(address) & mask
    while (slots[2 * slot + 1] !== 0) slot = (slot + 1) & mask
    slots[2 * slot] = address
    slots[2 * slot + 1] = row + 1
  }

  #grow(): void {
    const before = this.#slots
    this.#slots = new Uint32Array(2 * before.length)
    for (let at = 0; at < before.length; at += 2) {
      const row = before[at + 1] as number
      if (row !== 0) this.#put(before[at] as number, row - 1)
    }
  }
}

/** A secret factor: nobody can choose addresses that collide. */
const FACTOR = (crypto.getRandomValues(new Uint32Array(1))[0] as number) | 1

function hashOf(address: number): number {
  const mixed = Math.imul(address ^ (address >>> 16), FACTOR)
  return (mixed ^ (mixed >>> 15)) >>> 0
}

const DOT = 46
const ZERO = 48

/** An IPv4 address as a number. -1 for other texts, also for other spellings of an address. */
function addressIn(text: string): number {
  const { length } = text
  if (length < 7 || length > 15) return -1
  let [address, part, digits, parts] = [0, 0, 0, 0]
  for (let at = 0; at < length; at++) {
    const code = text.charCodeAt(at)
    if (code === DOT) {
      if (digits === 0 || ++parts > 3) return -1
      address = address * 256 + part
      part = digits = 0
      continue
    }
    const digit = code - ZERO
    // No leading zeros: the name is made of the number.
    if (digit < 0 || digit > 9 || (digits > 0 && part === 0)) return -1
    part = part * 10 + digit
    digits++
    if (part > 255) return -1
  }
  return parts === 3 && digits > 0 ? address * 256 + part : -1
}
