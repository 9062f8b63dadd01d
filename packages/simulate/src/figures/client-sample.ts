const WHOLE = 2 ** 32
/** Places of clients that are not in a sample, and of those that have sent no request. */
const LEFT_OUT = -1
const UNSEEN = -2

/**
 * A sample of the clients. It begins with all. Whenever they become too many, half of those that matter little leave, chosen by
 * hash, and half as many of the new ones come in. A client that is in it at the end has been in it from its first request on.
 *
 * Each stands for as many as were likely to be chosen in its place, so that sums over the sample estimate those over all
 * (Horvitz and Thompson, 1952).
 */
export class ClientSample {
  /** The share of new clients that come in: 1 for all. */
  share = 1
  readonly #max: number
  readonly #matters: (place: number) => boolean
  /** By row of the client: its place in the sample. */
  readonly #places: number[] = []
  /** By place: a share, below which it was to be when it was chosen. */
  readonly #hashes: number[] = []
  /** By place: how likely it was to be chosen. 0 for clients that have left. */
  readonly #chances: number[] = []
  #size = 0

  /**
   * @param max clients that are too many
   * @param matters whether a client adds to the sums. Up to half of the places are kept for those that do
   */
  constructor(max: number, matters: (place: number) => boolean) {
    this.#max = max
    this.#matters = matters
  }

  /** The place of a client. Negative where it is not in the sample. */
  placeOf(row: number, nameOf: (row: number) => string): number {
    const place = this.#places[row] ?? UNSEEN
    if (place === UNSEEN) return this.#add(row, nameOf(row))
    return place >= 0 && (this.#chances[place] as number) > 0 ? place : LEFT_OUT
  }

  /** The sum over all clients, as estimated. */
  sum(of: (place: number) => number): number {
    let sum = 0
    for (const [place, chance] of this.#chances.entries()) if (chance > 0) sum += of(place) / chance
    return sum
  }

  #add(row: number, name: string): number {
    // Rows come in any order, where a policy sees only some of the clients.
    while (this.#places.length <= row) this.#places.push(UNSEEN)
    this.#places[row] = LEFT_OUT
    const hash = hashOf(name) / WHOLE
    if (hash >= this.share) return LEFT_OUT
    const place = this.#hashes.push(hash) - 1
    this.#chances.push(this.share)
    this.#places[row] = place
    if (++this.#size > this.#max) this.#halve()
    return place
  }

  #halve(): void {
    this.share /= 2
    const members = [...this.#chances.keys()].filter((place) => (this.#chances[place] as number) > 0)
    const kept = new Set(members.filter(this.#matters))
    if (kept.size > this.#max / 2) kept.clear()
    for (const place of members) {
      if (kept.has(place)) continue
      const stays = (this.#hashes[place] as number) < this.share
      this.#chances[place] = stays ? Math.min(this.#chances[place] as number, this.share) : 0
      if (!stays) this.#size--
    }
  }
}

/** 32 bits of a name, the same in each run (FNV-1a, mixed as MurmurHash3 does). */
function hashOf(name: string): number {
  let hash = 0x811c9dc5
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0
}
