import { getOrInsert } from '../../util/get-or-insert.js'

/** Serialises the reads of each shard of an index. */
export class ShardReads {
  readonly #readAll: (shard: number) => Promise<void>
  /** Reads that have not begun, and reads under way. */
  readonly #waiting = new Map<number, Promise<void>>()
  readonly #reading = new Map<number, Promise<void>>()
  #count = 0
  /** Instants of changes that this process made during reads, by field. */
  readonly #changed = new Map<string, number>()

  constructor(readAll: (shard: number) => Promise<void>) {
    this.#readAll = readAll
  }

  /**
   * Reads the changes of a shard. A call during a read gets the next read, which includes all changes before the call.
   */
  read(shard: number): Promise<void> {
    return getOrInsert(this.#waiting, shard, () =>
      (this.#reading.get(shard) ?? Promise.resolve()).then(() => {
        this.#waiting.delete(shard)
        const reading = this.#readCounted(shard)
        this.#reading.set(
          shard,
          reading.catch(() => {}),
        )
        return reading
      }),
    )
  }

  /** Notes that this process has changed an entry at an instant. */
  noteChange(field: string, at: number): void {
    if (this.#count > 0) this.#changed.set(field, at)
  }

  /** Whether an entry of this instant may predate a change that this process made. */
  isOutdated(field: string, since: number): boolean {
    return (this.#changed.get(field) ?? 0) >= since
  }

  async #readCounted(shard: number): Promise<void> {
    this.#count++
    try {
      await this.#readAll(shard)
    } finally {
      this.#count--
      if (this.#count === 0) this.#changed.clear()
    }
  }
}
