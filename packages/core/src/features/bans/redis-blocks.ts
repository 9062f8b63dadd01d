import type { CheckedQuery } from '../../blocks/given-blocks.js'
import { MAX_CHANGES } from '../../redis/blocks/block-index.js'
import type { BlockKeys } from '../../redis/blocks/block-keys.js'
import { blockEntry, type IndexEntry } from '../../redis/blocks/entry.js'
import { pageOf } from '../../redis/blocks/index-pages.js'
import type { MirroredBlocks } from '../../redis/blocks/mirrored-blocks.js'
import type { Changes } from '../../redis/changes/changes.js'
import { encodeBlock, encodeReason } from '../../redis/scripts/decode.js'
import type { BlockPage } from '../../store/blocks.js'
import type { BlockEntry } from '../../store/entries.js'
import { startOf } from '../../store/identity.js'
import { EVERY_POLICY } from '../../store/store.js'
import { propertyOf } from '../../util/property-of.js'
import type { BlocksKeeper } from './kept-blocks.js'

/**
 * The blocks of a store on Redis. Reads the index itself, not this process's mirror. Writes to the index and to the keys
 * that decisions check.
 */
export class RedisBlocks implements BlocksKeeper {
  readonly maxAdded = MAX_CHANGES
  readonly now: () => number
  readonly #mirrored: MirroredBlocks
  readonly #keys: BlockKeys
  readonly #changes: Changes

  constructor(mirrored: MirroredBlocks, keys: BlockKeys, changes: Changes, now: () => number) {
    this.now = now
    this.#mirrored = mirrored
    this.#keys = keys
    this.#changes = changes
  }

  get known(): number {
    return this.#mirrored.size
  }

  page(query: CheckedQuery<BlockEntry>): Promise<BlockPage> {
    return pageOf(this.#mirrored.index, query, blockEntry)
  }

  async get(policy: string, identity: string): Promise<BlockEntry | undefined> {
    const entry = await this.#mirrored.index.get(policy, identity)
    return entry && !entry.isEnded ? blockEntry(entry) : undefined
  }

  async block(policy: string, identity: string, forMs: number, reason: string): Promise<void> {
    await this.#mirrored.requireRoom([{ policy, identity }])
    const encoded = encodeReason(reason)
    await this.#changes.make({ kind: 'block', policy, identity }, async () => {
      await this.#keys.set(policy, identity, forMs, encoded)
      await this.#mirrored.add(policy, identity, { forMs }, encoded)
    })
  }

  unblock(policy: string, identity: string): Promise<void> {
    return this.#end(policy, identity, () => this.#mirrored.end(policy, identity))
  }

  /** Ends all blocks of an identity and leaves no trace of its name. */
  async erase(identity: string): Promise<void> {
    for (const policy of await this.#mirrored.namesOf(identity)) {
      await this.#end(policy, identity, () => this.#mirrored.erase(policy, identity))
    }
  }

  async add(exported: readonly BlockEntry[]): Promise<number> {
    const entries = exported.map(indexEntry)
    await this.#mirrored.requireRoom(entries)
    const added = await this.#mirrored.keep(entries)
    await this.#keys.write(added, this.#mirrored.index)
    for (const { policy, identity } of added) this.#changes.note({ kind: 'block', policy, identity })
    return added.length
  }

  clear(): Promise<void> {
    return this.#changes.make({ kind: 'unblock all' }, async () => {
      for await (const places of this.#mirrored.clear()) await this.#keys.deleteAll(places)
    })
  }

  #end(policy: string, identity: string, end: () => Promise<void>): Promise<void> {
    return this.#changes.make({ kind: 'unblock', policy, identity }, async () => {
      // The index comes first, or a process that knows the block might write it again.
      await end()
      await this.#keys.delete(policy, identity)
    })
  }
}

function indexEntry(entry: BlockEntry): IndexEntry {
  const { kind, value, since, until, times, reason } = entry
  const policy = propertyOf(entry, 'policy') ?? EVERY_POLICY
  const [identity, encoded] = [startOf(kind) + value, encodeBlock({ reason, ban: propertyOf(entry, 'ban') })]
  return { policy, identity, since, until, times, isEnded: false, encoded, isUnwritten: undefined }
}
