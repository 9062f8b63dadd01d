import type { Head, Page, Written } from './block-index.js'

/** What this process holds of one shard of the index. */
export class Shard {
  /** Every change up to this version is known. */
  version = 0
  incarnation = ''
  epoch = 0
  /** Whether Redis may have lost changes since, without a new incarnation: another server answers, which had not all of them. */
  isInDoubt = false
  /** Whether this process may know entries of it. */
  isKnown = false
  /** The field of the newest change that is known, and its version. */
  #tail = { field: '', version: -1 }

  /** What the next page is asked for. */
  get tail(): string {
    return this.isInDoubt && this.#tail.version === this.version ? this.#tail.field : ''
  }

  isAt(head: Head | undefined): boolean {
    if (this.isInDoubt) return false
    return head ? head.incarnation === this.incarnation && head.version === this.version : !this.isKnown
  }

  /** Whether Redis has all that is known here, and later changes on top of it. */
  isContinuedBy({ head, isContinued }: Page): boolean {
    if (!head || head.incarnation !== this.incarnation || head.version < this.version) return false
    return isContinued && (!this.isInDoubt || this.tail !== '')
  }

  /** `head`: of what is read from now on, where nothing is known that it could lack. A read that fails then goes on where it was. */
  restart(head: Head | undefined): void {
    this.version = 0
    this.#tail = { field: '', version: -1 }
    if (!head) return
    this.incarnation = head.incarnation
    this.isInDoubt = false
  }

  /** Notes that Redis may lack what this process knows: the next read compares all entries. */
  startAnew(): void {
    this.restart(undefined)
    this.incarnation = ''
  }

  /** Call it with every page once it is taken over. */
  read({ head, entries }: Page, isLast: boolean): void {
    const last = entries.at(-1)
    if (last) {
      this.#tail = last
      this.isKnown = true
    }
    if (isLast) {
      this.version = head?.version ?? 0
      this.incarnation = head?.incarnation ?? ''
      this.epoch = Math.max(this.epoch, head?.epoch ?? 0)
      this.isInDoubt = false
    } else if (last) this.version = last.version
  }

  /** Call it with every change that this process makes. Changes of others in between still have to be read. */
  wrote({ before, head }: Written, field: string): void {
    this.isKnown = true
    if (head.incarnation !== this.incarnation || before !== this.version || this.isInDoubt) return
    this.version = head.version
    this.#tail = { field, version: head.version }
  }
}
