/** Bits of a hash that choose its bucket. The other 52 are held there, in a number each. */
const BUCKET_BITS = 12
const REST_BITS = 20
const FIRST_CAPACITY = 8
const GROWTH = 1.25

interface Bucket {
  /** Sorted, as far as they are filled. */
  rests: Float64Array
  size: number
}

/**
 * A set of 64-bit hashes, of some nine bytes each. Buckets grow by themselves, so that no step takes long, however many there are.
 * It holds one of two identities with the same hash (one pair in 2^64).
 */
export class IdentityHashes {
  readonly #buckets: (Bucket | undefined)[] = new Array(2 ** BUCKET_BITS).fill(undefined)
  #size = 0

  get size(): number {
    return this.#size
  }

  /** Whether it has the hash of these two halves. */
  has(high: number, low: number): boolean {
    const bucket = this.#buckets[high >>> REST_BITS]
    if (!bucket) return false
    const rest = restOf(high, low)
    return bucket.rests[placeOf(bucket, rest)] === rest
  }

  add(high: number, low: number): void {
    const index = high >>> REST_BITS
    let bucket = this.#buckets[index]
    if (!bucket) {
      bucket = { rests: unfilled(FIRST_CAPACITY), size: 0 }
      this.#buckets[index] = bucket
    }
    const rest = restOf(high, low)
    const place = placeOf(bucket, rest)
    if (bucket.rests[place] === rest) return
    if (bucket.size === bucket.rests.length) {
      const larger = unfilled(Math.ceil(bucket.size * GROWTH) + 1)
      larger.set(bucket.rests)
      bucket.rests = larger
    }
    bucket.rests.copyWithin(place + 1, place, bucket.size)
    bucket.rests[place] = rest
    bucket.size++
    this.#size++
  }

  delete(high: number, low: number): void {
    const bucket = this.#buckets[high >>> REST_BITS]
    if (!bucket) return
    const rest = restOf(high, low)
    const place = placeOf(bucket, rest)
    if (bucket.rests[place] !== rest) return
    bucket.rests.copyWithin(place, place + 1, bucket.size)
    bucket.size--
    bucket.rests[bucket.size] = Number.NaN
    this.#size--
  }

  clear(): void {
    this.#buckets.fill(undefined)
    this.#size = 0
  }
}

/** NaN in unfilled entries equals no hash. */
function unfilled(capacity: number): Float64Array {
  return new Float64Array(capacity).fill(Number.NaN)
}

function restOf(high: number, low: number): number {
  return (high & (2 ** REST_BITS - 1)) * 2 ** 32 + (low >>> 0)
}

/** The place of a number, or where it would be inserted. */
function placeOf({ rests, size }: Bucket, rest: number): number {
  let from = 0
  let to = size
  while (from < to) {
    const middle = (from + to) >>> 1
    if ((rests[middle] as number) < rest) from = middle + 1
    else to = middle
  }
  return from
}
