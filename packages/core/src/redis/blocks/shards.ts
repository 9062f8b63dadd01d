import type { BlockPlace } from '../../blocks/given-blocks.js'
import type { Head, Page, Written } from './block-index.js'
import { erasedField, type IndexEntry, isNewer, saltOf } from './entry.js'

/** Maximum known ends of a shard, 100,000 in all. The oldest are dropped first. */
const MAX_ENDS = 6250
/** How long processes write an epoch again if Redis has lost it: as long as the index stores it. */
const EPOCH_MS = 86_400_000

/** This process's copy of one shard of the index. */
export class Shard {
  /** Every change up to this version is known. */
  version = 0
  incarnation = ''
  epoch = 0
  /** Entries ended by hand, by field. No block of these identities is known. */
  readonly ends = new Map<string, IndexEntry>()
  /**
   * Number of ends with a hash instead of names, by salt. Usually there is one salt, as processes reuse a known one.
   */
  readonly #salts = new Map<string, number>()
  /**
   * Whether Redis may have lost changes without a new incarnation, because a different server replies that lacked some
   * of them.
   */
  isUnconfirmed = false
  /** Whether this process may know entries of the shard. */
  isKnown = false
  /** Whether the next read covers all entries, as some had no room. */
  readsAgain = false
  /** Whether this process has made changes that it has not read since, and so knows more than its version says. */
  isAhead = false
  /** The field of the newest known change, and its version. */
  #tail = { field: '', version: -1 }

  /** The known end of an entry in the index. Entries up to the epoch have ended, too. */
  endOf(field: string, entry: IndexEntry): IndexEntry | undefined {
    if (entry.since <= this.epoch) return { ...entry, isEnded: true, since: this.epoch, encoded: '' }
    const [end, erased] = [this.ends.get(field), this.erasedEnd(field, entry)]
    return end && erased ? (isNewer(end, erased) ? end : erased) : (end ?? erased)
  }

  /** The known end of a forgotten identity, under its names. */
  erasedEnd(field: string, { policy, identity }: BlockPlace): IndexEntry | undefined {
    let last: IndexEntry | undefined
    for (const salt of this.#salts.keys()) {
      const encoded = erasedField(field, salt)
      const end = this.ends.get(encoded)
      if (end && (!last || isNewer(end, last))) last = { ...end, policy, identity, encoded }
    }
    return last
  }

  /** Applies an end, or removes it if the entry has begun again. */
  take(field: string, entry: IndexEntry): void {
    this.forget(field)
    if (!entry.isEnded) return
    if (this.ends.size >= MAX_ENDS) this.forget(this.ends.keys().next().value as string)
    this.ends.set(field, entry)
    this.#countSalt(entry, 1)
  }

  /** Forgets an end. */
  forget(field: string): void {
    const end = this.ends.get(field)
    if (end) this.#countSalt(end, -1)
    this.ends.delete(field)
  }

  #countSalt(end: IndexEntry, by: 1 | -1): void {
    const salt = saltOf(end)
    if (salt === undefined) return
    const count = (this.#salts.get(salt) ?? 0) + by
    if (count > 0) this.#salts.set(salt, count)
    else this.#salts.delete(salt)
  }

  /**
   * The epoch that a shard with this head has lost; undefined if it has lost none, or if the epoch no longer matters.
   */
  lostEpoch(head: Head | undefined, now: number): number | undefined {
    return this.epoch > (head?.epoch ?? 0) && this.epoch + EPOCH_MS > now ? this.epoch : undefined
  }

  /** The field that the next page must confirm; empty if there is none. */
  get tail(): string {
    return this.isUnconfirmed && !this.isAhead && this.#tail.version === this.version ? this.#tail.field : ''
  }

  isAt(head: Head | undefined): boolean {
    if (this.isUnconfirmed || this.readsAgain) return false
    return head ? head.incarnation === this.incarnation && head.version === this.version : !this.isKnown
  }

  /** Whether Redis has all known changes, and possibly later ones. */
  isContinuedBy({ head, isContinued }: Page): boolean {
    if (!head || head.incarnation !== this.incarnation || head.version < this.version) return false
    return isContinued && (!this.isUnconfirmed || this.tail !== '')
  }

  /**
   * Restarts the read. `head`: the head of the shard, if no known entry can be missing from it. A failed read then
   * continues where it stopped.
   */
  restart(head: Head | undefined): void {
    this.#rewind()
    if (!head) return
    this.incarnation = head.incarnation
    this.isUnconfirmed = false
  }

  /** Call it before each read. */
  begin(): void {
    if (this.readsAgain) this.#rewind()
    this.readsAgain = false
  }

  #rewind(): void {
    this.version = 0
    this.#tail = { field: '', version: -1 }
  }

  /** Notes that Redis may lack known entries. The next read compares all entries. */
  startAnew(): void {
    this.restart(undefined)
    this.incarnation = ''
  }

  /** Call it with every page once its entries are applied. */
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
      this.isUnconfirmed = false
      this.isAhead = false
    } else if (last) this.version = last.version
  }

  /** Call it with every change that this process makes. Changes by others in between remain to be read. */
  wrote({ before, head }: Written, field: string): void {
    this.isKnown = true
    if (head.incarnation !== this.incarnation || before !== this.version || this.isUnconfirmed) {
      this.isAhead = true
      return
    }
    this.version = head.version
    this.#tail = { field, version: head.version }
  }
}
