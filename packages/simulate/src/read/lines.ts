import { textOf } from './bytes.js'

/** Longer lines are skipped. */
export const MAX_LINE_BYTES = 1024 * 1024

const NEWLINE = 10
const BOM = '\uFEFF'

/** Makes whole lines of chunks that end anywhere. */
export class LineSplitter {
  /** Lines that were too long. */
  tooLong = 0
  #rest: Buffer[] = []
  #restBytes = 0
  #isSkipping = false
  #isFirst = true

  /** The lines that end in this chunk, each with its line break. */
  push(chunk: Buffer): string {
    const from = this.#isSkipping ? chunk.indexOf(NEWLINE) + 1 : 0
    if (this.#isSkipping && from === 0) return ''
    this.#isSkipping = false
    const to = chunk.lastIndexOf(NEWLINE) + 1
    if (to <= from) {
      this.#keep(chunk.subarray(from))
      return ''
    }
    const whole = chunk.subarray(from, to)
    const text = this.#text(this.#rest.length > 0 ? Buffer.concat([...this.#rest, whole]) : whole)
    this.#rest = []
    this.#restBytes = 0
    this.#keep(chunk.subarray(to))
    return text
  }

  /** The last line, where it lacks its line break. */
  end(): string {
    const text = this.#text(Buffer.concat(this.#rest))
    this.#rest = []
    return text
  }

  #keep(rest: Buffer): void {
    if (rest.length === 0) return
    this.#restBytes += rest.length
    if (this.#restBytes > MAX_LINE_BYTES) {
      this.tooLong++
      this.#isSkipping = true
      this.#rest = []
      this.#restBytes = 0
    } else {
      this.#rest.push(rest)
    }
  }

  #text(bytes: Buffer): string {
    const text = textOf(bytes)
    if (!this.#isFirst || text === '') return text
    this.#isFirst = false
    return text.startsWith(BOM) ? text.slice(1) : text
  }
}
