import type { BlockPlace } from '../../blocks/given-blocks.js'
import type { Head, Page, Written } from './block-index.js'
import { erasedField, type IndexEntry, isNewer, saltOf } from './entry.js'

/** Most ends that are known of a shard, 100,000 in all; the oldest go first. */
const MAX_ENDS = 6250
/** For how long all that was made void is written again where Redis has lost it, as long as the index has it. */
const EPOCH_MS = 86_400_000

/** What this process holds of one shard of the index. */
export class Shard {
  /** Every change up to this version is known. */
  version = 0
  incarnation = ''
  epoch = 0
  /** What was ended by hand, by field: of an identity that is here no block is known. */
  readonly ends = new Map<string, IndexEntry>()
  /** How many of these have a hash in place of names, by its salt: mostly one, as processes use one that they know. */
  readonly #salts = new Map<string, number>()
  /** Whether Redis may have lost changes since, without a new incarnation: another server answers, which had not all of them. */
  isUnconfirmed = false
  /** Whether this process may know entries of it. */
  isKnown = false
  /** Whether the next read is of all entries, as some had no room. */
  readsAgain = false
  /** Whether this process has changed what it has not read since: it knows more than its version says. */
  isAhead = false
  /** The field of the newest change that is known, and its version. */
  #tail = { field: '', version: -1 }

  /** The end that is known of what the index has an entry of: what was there when all was made void has ended, too. */
  endOf(field: string, entry: IndexEntry): IndexEntry | undefined {
    if (entry.since <= this.epoch) return { ...entry, isEnded: true, since: this.epoch, encoded: '' }
    const [end, erased] = [this.ends.get(field), this.erasedEnd(field, entry)]
    return end && erased ? (isNewer(end, erased) ? end : erased) : (end ?? erased)
  }

  /** The end that is known of an identity that was forgotten, under its names. */
  erasedEnd(field: string, { policy, identity }: BlockPlace): IndexEntry | undefined {
    let last: IndexEntry | undefined
    for (const salt of this.#salts.keys()) {
      const encoded = erasedField(field, salt)
      const end = this.ends.get(encoded)
      if (end && (!last || isNewer(end, last))) last = { ...end, policy, identity, encoded }
    }
    return last
  }

  /** Takes over that something has ended, or has begun again. */
  take(field: string, entry: IndexEntry): void {
    this.forget(field)
    if (!entry.isEnded) return
    if (this.ends.size >= MAX_ENDS) this.forget(this.ends.keys().next().value as string)
    this.ends.set(field, entry)
    this.#countSalt(entry, 1)
  }

  /** Forgets that something has ended. */
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

  /** The epoch that a shard with this head has lost; undefined where it has not, or where it matters to no process. */
  lostEpoch(head: Head | undefined, now: number): number | undefined {
    return this.epoch > (head?.epoch ?? 0) && this.epoch + EPOCH_MS > now ? this.epoch : undefined
  }

  /** What the next page is asked for. */
  get tail(): string {
    return this.isUnconfirmed && !this.isAhead && this.#tail.version === this.version ? this.#tail.field : ''
  }

  isAt(head: Head | undefined): boolean {
    if (this.isUnconfirmed || this.readsAgain) return false
    return head ? head.incarnation === this.incarnation && head.version === this.version : !this.isKnown
  }

  /** Whether Redis has all that is known here, and later changes on top of it. */
  isContinuedBy({ head, isContinued }: Page): boolean {
    if (!head || head.incarnation !== this.incarnation || head.version < this.version) return false
    return isContinued && (!this.isUnconfirmed || this.tail !== '')
  }

  /** `head`: of what is read from now on, where nothing is known that it could lack. A read that fails then goes on where it was. */
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
      this.isUnconfirmed = false
      this.isAhead = false
    } else if (last) this.version = last.version
  }

  /** Call it with every change that this process makes. Changes of others in between still have to be read. */
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
