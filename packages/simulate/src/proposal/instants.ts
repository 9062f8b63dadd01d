/** Instants of the smallest ring, and of a slab. */
const FIRST = 4
const SLAB = 65_536

/** Rings of one capacity, in slabs. */
class Rings {
  readonly capacity: number
  readonly #perSlab: number
  readonly #slabs: Float64Array[] = []
  readonly #free: number[] = []
  #used = 0

  constructor(capacity: number) {
    this.capacity = capacity
    this.#perSlab = Math.max(1, SLAB / capacity)
  }

  take(): number {
    const free = this.#free.pop()
    if (free !== undefined) return free
    if (this.#used === this.#slabs.length * this.#perSlab) {
      this.#slabs.push(new Float64Array(this.#perSlab * this.capacity))
    }
    return this.#used++
  }

  give(ring: number): void {
    this.#free.push(ring)
  }

  slabOf(ring: number): Float64Array {
    return this.#slabs[Math.floor(ring / this.#perSlab)] as Float64Array
  }

  /** Where a ring begins in its slab. */
  startOf(ring: number): number {
    return (ring % this.#perSlab) * this.capacity
  }
}

/** Instants of many clients, a ring each, oldest first. They take 8 bytes each, in rings of a power of two. */
export class Instants {
  /** By the power of two above the smallest. */
  readonly #sizes: Rings[] = [new Rings(FIRST)]
  /** By row: its ring, the power of its size, its first place, and its length. */
  #rings = new Int32Array(1024).fill(-1)
  #powers = new Uint8Array(1024)
  #starts = new Uint32Array(1024)
  #lengths = new Uint32Array(1024)

  lengthOf(row: number): number {
    return row < this.#lengths.length ? (this.#lengths[row] as number) : 0
  }

  at(row: number, place: number): number {
    const rings = this.#sizes[this.#powers[row] as number] as Rings
    const ring = this.#rings[row] as number
    const index = ((this.#starts[row] as number) + place) & (rings.capacity - 1)
    return rings.slabOf(ring)[rings.startOf(ring) + index] as number
  }

  push(row: number, instant: number): void {
    if (row >= this.#rings.length) this.#addRows(row)
    if (this.#rings[row] === -1) this.#rings[row] = (this.#sizes[0] as Rings).take()
    const length = this.#lengths[row] as number
    if (length === (this.#sizes[this.#powers[row] as number] as Rings).capacity) this.#enlarge(row)
    const rings = this.#sizes[this.#powers[row] as number] as Rings
    const ring = this.#rings[row] as number
    const index = ((this.#starts[row] as number) + length) & (rings.capacity - 1)
    rings.slabOf(ring)[rings.startOf(ring) + index] = instant
    this.#lengths[row] = length + 1
  }

  dropFirst(row: number): void {
    const { capacity } = this.#sizes[this.#powers[row] as number] as Rings
    this.#starts[row] = ((this.#starts[row] as number) + 1) & (capacity - 1)
    this.#lengths[row] = (this.#lengths[row] as number) - 1
  }

  #enlarge(row: number): void {
    const power = this.#powers[row] as number
    const [before, ring, length] = [this.#sizes[power] as Rings, this.#rings[row] as number, this.lengthOf(row)]
    this.#sizes[power + 1] ??= new Rings(2 * before.capacity)
    const after = this.#sizes[power + 1] as Rings
    const larger = after.take()
    const [slab, start] = [after.slabOf(larger), after.startOf(larger)]
    for (let place = 0; place < length; place++) slab[start + place] = this.at(row, place)
    before.give(ring)
    this.#rings[row] = larger
    this.#powers[row] = power + 1
    this.#starts[row] = 0
  }

  #addRows(row: number): void {
    const size = Math.max(row + 1, 2 * this.#rings.length)
    const rings = new Int32Array(size).fill(-1)
    rings.set(this.#rings)
    this.#rings = rings
    const powers = new Uint8Array(size)
    powers.set(this.#powers)
    this.#powers = powers
    this.#starts = grown(this.#starts, size)
    this.#lengths = grown(this.#lengths, size)
  }
}

export function grown(numbers: Uint32Array, size: number): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(size)
  larger.set(numbers)
  return larger
}
