import { randomBytes } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import type { BlockPlace } from '../../blocks/given-blocks.js'
import type { BanTerms, BlockReport } from '../../store/store.js'
import { hasOwn } from '../../util/property-of.js'
import { encodeBlock } from '../scripts/decode.js'
import {
  BlockIndex,
  type BlockIndexOptions,
  type Change,
  fieldAfter,
  groupsOf,
  MAX_CHANGES,
  PAGE,
  type Page,
  type Written,
} from './block-index.js'
import { erasedField, fieldOf, type IndexEntry, isNewer, SHARDS, saltOf, shardOf } from './entry.js'
import { type EntryMirror, IndexCopy } from './index-copy.js'
import { Looks } from './looks.js'
import { ShardReads } from './shard-reads.js'
import type { Shard } from './shards.js'
import type { StoreTime } from './store-time.js'
import { UnwrittenBans } from './unwritten-bans.js'

export interface KnownEntriesOptions extends BlockIndexOptions {
  readonly mirror: EntryMirror
  /** The block key of an identity, and the key of its strikes; undefined for entries without keys. */
  readonly keysOf: ((policy: string, identity: string) => readonly [string, string] | undefined) | undefined
  readonly isAway: () => boolean
  /** Called when this process has restored entries or ends that Redis had lost. */
  readonly onRestored: (entries: readonly IndexEntry[]) => void
  /** Called with the known ends when a different server replies: it may have older keys. */
  readonly onUnconfirmed: ((ends: readonly IndexEntry[]) => void) | undefined
  /** Called when the index could not be read, or bans could not be written to it. */
  readonly onFailed: (error: Error) => void
}

/** A new entry that is older than this, in ms, shows that other processes are restoring entries that Redis lost. */
const RECENT_MS = 5000
/** After this many reads without a loss, the index is complete: other processes have restored lost entries by then. */
const CALM_LOOKS = 3
/** Maximum failures of the first read at the same place. */
const FIRST_TRIES = 3
/**
 * How long an end is remembered if this process does not know the block: another process may know it and write it
 * again.
 */
const END_MS = 3_600_000

/**
 * Preserves the entries of an index, whatever happens to Redis, as long as a process that knows them lives. The index
 * in Redis is authoritative. This process mirrors it, uses the mirror during an outage, and restores entries that Redis
 * has lost.
 */
export class KnownEntries {
  readonly index: BlockIndex
  readonly #options: KnownEntriesOptions
  readonly #time: StoreTime
  readonly #copy: IndexCopy
  readonly #reads = new ShardReads((shard) => this.#readAll(shard))
  readonly #bans = new UnwrittenBans((changes) => this.#write(changes))
  readonly #looks = new Looks(() => this.#look())
  /** The salt of hashes that replace names: the first one found in the index, or a new one. */
  #salt: string | undefined
  /** The next shard to read even though its head shows no change. */
  #turn = 0
  #isLoaded = false
  /** Number of consecutive reads of the index that found no loss. */
  #calmLooks = 0

  constructor(options: KnownEntriesOptions) {
    this.#options = options
    this.#copy = new IndexCopy(options.mirror, options.time)
    this.#time = options.time
    this.index = new BlockIndex(options)
  }

  /** Resolves after the first attempt to read the index, even a failed one. */
  get looked(): Promise<void> {
    return this.#looks.first
  }

  /** Resolves once this process and Redis agree on an entry. */
  confirm(entry: IndexEntry): Promise<void> {
    return this.#reads.read(shardOf(fieldOf(entry.policy, entry.identity)))
  }

  /**
   * Resolves once this process has read the whole index.
   *
   * @throws SluiceError `STORE_UNAVAILABLE`
   */
  async loaded(): Promise<void> {
    if (!this.#isLoaded) await this.#readChanged()
  }

  /** Whether this process has seen no sign that its copy of the index is incomplete. */
  get isWhole(): boolean {
    return this.#calmLooks >= CALM_LOOKS
  }

  /** Like `loaded`, but retries while Redis is available: a page of a busy server may come too late. */
  async load(): Promise<void> {
    for (let tries = 1, known = 0; ; tries++) {
      try {
        return await this.loaded()
      } catch (error) {
        const isDenied = /\bNOPERM\b/.test((error as Error).message)
        if (isDenied || tries === FIRST_TRIES || this.#looks.isClosed || this.#options.isAway()) throw error
        // Pages read so far are not read again.
        if (this.#copy.mirror.size > known) tries = 0
        known = this.#copy.mirror.size
      }
    }
  }

  /** Starts to poll for changes by other processes. */
  start(): void {
    this.#looks.start()
  }

  /**
   * Marks the copy as unconfirmed. A different server replies, or the same one after a while, and it may have lost the
   * last changes.
   */
  suspect(): void {
    for (const shard of this.#copy.shards) shard.isUnconfirmed = shard.incarnation !== ''
    this.#calmLooks = 0
    this.#looks.lookNow()
  }

  /** Adds an entry for `forMs` from now, or until an instant. */
  async add(
    policy: string,
    identity: string,
    end: { forMs: number } | { until: number },
    encoded: string,
  ): Promise<void> {
    const numbers: Change['numbers'] = hasOwn(end, 'until') ? [0, end.until, 0] : [end.forMs, 0, 0]
    await this.#write([this.#change(policy, identity, 'BLOCK', numbers, encoded)])
  }

  /** Records an end, for as long as a process may still know the entry. */
  async end(policy: string, identity: string): Promise<void> {
    const until = this.#copy.mirror.get(policy, identity)?.until ?? this.#time.now() + END_MS
    this.#bans.delete(fieldOf(policy, identity))
    await this.#write([this.#change(policy, identity, 'END', [until, 0, 0], '')])
  }

  /** Records for `forMs` that entries have ended, whatever their original end. */
  async endAll(entries: readonly BlockPlace[], forMs: number): Promise<void> {
    const until = this.#time.now() + forMs
    await this.#write(entries.map(({ policy, identity }) => this.#change(policy, identity, 'END', [until, 1, 0], '')))
  }

  /** Records an end like `end`, or for `forMs`, with a hash instead of names. Call `namesOf` first. */
  async erase(policy: string, identity: string, forMs?: number): Promise<void> {
    const field = fieldOf(policy, identity)
    const known = this.#copy.mirror.get(policy, identity) ?? this.#copy.shard(field).ends.get(field)
    const until = forMs === undefined ? (known?.until ?? this.#time.now() + END_MS) : this.#time.now() + forMs
    this.#salt ??= randomBytes(16).toString('base64url')
    this.#bans.delete(field)
    const numbers: Change['numbers'] = [until, forMs === undefined ? 0 : 1, 0]
    await this.#write([this.#change(policy, identity, 'ERASE', numbers, erasedField(field, this.#salt))])
  }

  /** Records a ban that began just now. Redis has only its block key so far. */
  began({ scope: policy, forgetAfterMs }: BanTerms, identity: string, now: number, block: BlockReport): void {
    const { remainingMs, reason, ban } = block
    const until = now + remainingMs
    const encoded = encodeBlock(ban ? { reason, ban: { ...ban, forgetAfterMs } } : { reason, ban })
    const known = this.#copy.mirror.get(policy, identity)
    if (known && known.until >= until) return
    const times = (known?.times ?? 0) + 1
    const entry: IndexEntry = { policy, identity, until, since: now, times, isEnded: false, encoded, isUnwritten: true }
    this.#copy.mirror.set(entry, this.#time.now())
    if (!this.#bans.add({ policy, identity, op: 'KEEP', numbers: [until, now, 0], encoded, keys: undefined })) return
    this.#copy.shard(fieldOf(policy, identity)).isKnown = true
    setImmediate().then(() => this.#writeBans())
  }

  /** Writes known entries, unless the index has later ones. Resolves to the written entries. */
  async keep(entries: readonly IndexEntry[]): Promise<readonly IndexEntry[]> {
    return this.#write(
      entries.map(({ policy, identity, until, since, times, isEnded, encoded }) =>
        isEnded
          ? this.#change(policy, identity, encoded === '' ? 'END' : 'ERASE', [until, 0, since], encoded)
          : this.#change(policy, identity, 'KEEP', [until, since, times], encoded),
      ),
    )
  }

  /** The policies or lists under which an identity has entries or ends, in the index or in this process. */
  async namesOf(identity: string): Promise<ReadonlySet<string>> {
    const names = new Set<string>()
    const note = (entry: BlockPlace) => {
      if (entry.identity === identity) names.add(entry.policy)
    }
    for (const entry of this.#copy.mirror) note(entry)
    for (const change of this.#bans.values()) note(change)
    for (const { ends } of this.#copy.shards) for (const end of ends.values()) note(end)
    for await (const entry of this.#everything()) note(entry)
    return names
  }

  /** All entries of the index that were not ended by hand. */
  async *all(): AsyncGenerator<IndexEntry> {
    for await (const entry of this.#everything()) if (!entry.isEnded) yield entry
  }

  async *#everything(): AsyncGenerator<IndexEntry> {
    for (let shard = 0; shard < SHARDS; shard++) {
      for (let after = 0; ; ) {
        const { head, entries } = await this.index.page(shard, after)
        this.#salt ??= head?.salt
        for (const { entry } of entries) if (entry) yield entry
        if (entries.length < PAGE) break
        after = entries.at(-1)?.version as number
      }
    }
  }

  /** Removes all entries from the index. Yields the places whose block keys remain. */
  async *clear(): AsyncGenerator<readonly BlockPlace[]> {
    this.#bans.clear()
    for (let shard = 0; shard < SHARDS; shard++) {
      for (;;) {
        const { epoch, fields } = await this.index.clear(shard)
        await this.#copy.forgetUntil(shard, epoch)
        yield fields.map((field) => {
          const [policy, identity] = JSON.parse(field) as [string, string]
          return { policy, identity }
        })
        if (fields.length < PAGE) break
      }
      await this.#reads.read(shard)
    }
  }

  close(): void {
    this.#looks.close()
  }

  #change(policy: string, identity: string, op: Change['op'], numbers: Change['numbers'], encoded: string): Change {
    return { policy, identity, op, numbers, encoded, keys: this.#options.keysOf?.(policy, identity) }
  }

  /** Writes changes. Resolves to the entries of the changes that were made. */
  async #write(changes: readonly Change[]): Promise<IndexEntry[]> {
    const entries: IndexEntry[] = []
    for (const all of groupsOf(changes)) {
      const [{ policy, identity }] = all as [Change]
      const shard = shardOf(fieldOf(policy, identity))
      for (let i = 0; i < all.length; i += MAX_CHANGES) {
        const some = all.slice(i, i + MAX_CHANGES)
        const copied = this.#copy.shard(shard)
        const written = await this.index.write(shard, some, copied.epoch)
        copied.wrote(written, fieldAfter(some.at(-1) as Change))
        some.forEach((change, n) => {
          const { policy, identity } = change
          const { isMade, entry } = written.entries[n] as Written['entries'][number]
          const field = fieldOf(policy, identity)
          this.#reads.noteChange(field, entry?.since ?? written.now)
          if (isMade && entry) entries.push({ ...entry, policy, identity })
          if (isMade && change.op === 'ERASE') copied.forget(field)
          // A ban that began during this write stays known until its own write.
          if (this.#bans.hasLater(field, entry?.since ?? change.numbers[1])) return
          if (!entry || change.op === 'ERASE') this.#copy.mirror.delete(policy, identity)
          if (entry) this.#copy.take(copied, isMade ? fieldAfter(change) : field, entry, written.now)
        })
      }
    }
    return entries
  }

  /** Bans that cannot be written now are tried again after the next read. */
  async #writeBans(): Promise<void> {
    if (this.#looks.isClosed) return
    try {
      await this.#bans.write()
    } catch (error) {
      // Redis is unavailable. The mirror has the bans.
      this.#options.onFailed(error as Error)
    }
  }

  async #look(): Promise<void> {
    if (this.#options.isAway()) return
    try {
      if (this.#copy.mirror.readsAgain?.(() => this.#time.now())) {
        this.#calmLooks = 0
        for (const shard of this.#copy.shards) shard.readsAgain = true
      }
      await (this.#isLoaded ? this.#readChanged() : this.load())
      this.#calmLooks++
      // The index was evicted as a whole, and no process restores it.
      if (this.#copy.shards.every(({ incarnation }) => incarnation === '') && (await this.index.hasMarker())) {
        this.#calmLooks = 0
      }
      await this.#writeBans()
    } catch (error) {
      // Redis is unavailable, which decisions report, or does not permit the read.
      this.#options.onFailed(error as Error)
      this.#calmLooks = 0
    }
  }

  async #readChanged(): Promise<void> {
    const heads = await this.index.heads()
    this.#turn = (this.#turn + 1) % SHARDS
    for (const [n, head] of heads.entries()) {
      const shard = this.#copy.shard(n)
      // A head does not show an eviction of its shard's other key.
      const isInTurn = n === this.#turn && shard.isKnown
      if (!this.#looks.isClosed && (isInTurn || !shard.isAt(head))) await this.#reads.read(n)
    }
    this.#isLoaded = true
  }

  async #readAll(number: number): Promise<void> {
    const shard = this.#copy.shard(number)
    shard.begin()
    const { isUnconfirmed } = shard
    /** Whether entries are known from before. A hash may show that some of them were forgotten. */
    const { isKnown } = shard
    let page = await this.index.page(number, shard.version, shard.tail)
    const since = page.head?.version ?? 0
    const seen = new Set<string>()
    let hasErased = false
    /** Entries that this process knows and Redis does not. */
    let lost = new Map<string, IndexEntry>()
    if (!shard.isContinuedBy(page)) {
      // A shard that is new to this process cannot show a loss.
      if (shard.isKnown) this.#calmLooks = 0
      lost = await this.#copy.in(number)
      if (shard.version > 0) page = await this.index.page(number, 0)
      const epoch = shard.lostEpoch(page.head, page.now)
      shard.restart(lost.size === 0 && epoch === undefined ? page.head : undefined)
      if (lost.size === 0 && epoch === undefined && !page.head) shard.isKnown = false
    }
    for (;;) {
      if (page.head && page.head.epoch > shard.epoch) await this.#copy.forgetUntil(number, page.head.epoch, lost)
      for (const { version, field, entry } of page.entries) {
        seen.add(field)
        if (entry && saltOf(entry) && (isKnown || version > since)) hasErased = true
      }
      this.#takePage(shard, page, lost)
      const isLast = page.entries.length < PAGE
      shard.read(page, isLast)
      if (isLast) break
      page = await this.index.page(number, shard.version)
    }
    if (hasErased) {
      this.#bans.deleteErased(shard)
      await this.#copy.dropErased(number, seen, lost)
    }
    await this.#restore(number, page, lost)
    // After this read, a process that has not seen such an end may have written the name that it replaces.
    if (shard.isAhead && [...lost.values()].some(saltOf)) await this.#readAll(number)
    if (isUnconfirmed && shard.ends.size > 0) this.#options.onUnconfirmed?.([...shard.ends.values()])
  }

  #takePage(shard: Shard, { entries, now }: Page, lost: Map<string, IndexEntry>): void {
    for (const { field, entry } of entries) {
      if (!entry) continue
      const known = lost.get(field) ?? shard.endOf(field, entry)
      // The entry comes from an older state of Redis, or from a process that did not know the later entry.
      if (known && isNewer(known, entry)) {
        lost.set(field, known)
        continue
      }
      lost.delete(field)
      const isOld = !entry.isEnded && entry.since < now - RECENT_MS
      if (isOld && this.#isLoaded && !this.#copy.mirror.get(entry.policy, entry.identity)) this.#calmLooks = 0
      if (this.#reads.isOutdated(field, entry.since) || this.#bans.hasLater(field, entry.since)) continue
      this.#copy.take(shard, field, entry, now)
    }
  }

  /** Restores entries that Redis has lost. `page`: the last page that was read. */
  async #restore(number: number, { head, now }: Page, lost: ReadonlyMap<string, IndexEntry>): Promise<void> {
    const shard = this.#copy.shard(number)
    // Entries that ended meanwhile are not in the mirror.
    const entries = [...lost.values()].filter(
      ({ policy, identity, isEnded }) => isEnded || this.#copy.mirror.get(policy, identity),
    )
    // Taken before the write, which changes known entries in place.
    const unwritten = new Set([...lost.keys()].filter((field) => lost.get(field)?.isUnwritten))
    try {
      const epoch = shard.lostEpoch(head, now)
      if (entries.length === 0 && epoch !== undefined) await this.index.write(number, [], epoch)
      const written = await this.keep(entries)
      const restored = written.filter(({ policy, identity }) => !unwritten.has(fieldOf(policy, identity)))
      if (restored.length > 0) this.#options.onRestored(restored)
    } catch (error) {
      shard.startAnew()
      throw error
    }
  }
}
