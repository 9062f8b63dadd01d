import type { ParsedLine } from '../formats/parsed-line.js'

const BATCH = 1024

/** One of several logs. */
export interface Run {
  /** When its first request was logged, in ms. */
  readonly firstMs: number
  /** Its records in the order of its lines. */
  batches(): AsyncGenerator<readonly ParsedLine[], void, void>
}

/** Merges logs by the times at which their lines were written. A log is opened when its first line is due. */
export async function* merged(runs: readonly Run[]): AsyncGenerator<readonly ParsedLine[], void, void> {
  const cursors = runs.map((run) => new Cursor(run)).sort((a, b) => a.nextMs - b.nextMs)
  let batch: ParsedLine[] = []
  try {
    for (let first = cursors.shift(); first; first = cursors.shift()) {
      if (!(await first.load())) continue
      first.take(batch, cursors[0]?.nextMs ?? Number.POSITIVE_INFINITY)
      const place = cursors.findIndex(({ nextMs }) => nextMs > (first as Cursor).nextMs)
      cursors.splice(place < 0 ? cursors.length : place, 0, first)
      if (batch.length >= BATCH) {
        yield batch
        batch = []
      }
    }
    yield batch
  } finally {
    for (const cursor of cursors) await cursor.close()
  }
}

class Cursor {
  nextMs: number
  readonly #run: Run
  #batches: ReturnType<Run['batches']> | undefined
  #batch: readonly ParsedLine[] = []
  #at = 0

  constructor(run: Run) {
    this.#run = run
    this.nextMs = run.firstMs
  }

  /** Whether there is a next record. */
  async load(): Promise<boolean> {
    this.#batches ??= this.#run.batches()
    while (this.#at === this.#batch.length) {
      const { done, value } = await this.#batches.next()
      if (done) return false
      this.#batch = value
      this.#at = 0
    }
    return true
  }

  /** Moves the next record, and those behind it up to a time and the end of what was loaded. */
  take(to: ParsedLine[], untilMs: number): void {
    do {
      const record = this.#batch[this.#at++] as ParsedLine
      to.push(record)
      const next = this.#batch[this.#at]
      // Where nothing is loaded the next record is not earlier, as far as is known.
      this.nextMs = writtenMs(next ?? record)
    } while (this.#at < this.#batch.length && this.nextMs <= untilMs)
  }

  async close(): Promise<void> {
    await this.#batches?.return()
  }
}

export function writtenMs({ startMs, durationMs = 0 }: ParsedLine): number {
  return startMs + durationMs
}
