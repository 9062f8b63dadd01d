import type { BlockKeys } from '../blocks/block-keys.js'
import type { IndexEntry } from '../blocks/entry.js'
import type { MirroredBlocks } from '../blocks/mirrored-blocks.js'
import { encodeReason } from '../scripts/decode.js'
import type { Changes } from './changes.js'

/** Blocks identities and ends their blocks and bans, in the index and under the keys that decisions check. */
export class BlockChanges {
  readonly #mirrored: MirroredBlocks
  readonly #keys: BlockKeys
  readonly #changes: Changes

  constructor(mirrored: MirroredBlocks, keys: BlockKeys, changes: Changes) {
    this.#mirrored = mirrored
    this.#keys = keys
    this.#changes = changes
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

  /** Adds exported entries. Resolves to the number added. */
  async add(entries: readonly IndexEntry[]): Promise<number> {
    await this.#mirrored.requireRoom(entries)
    const added = await this.#mirrored.keep(entries)
    await this.#keys.write(added, this.#mirrored.index)
    for (const { policy, identity } of added) this.#changes.note({ kind: 'block', policy, identity })
    return added.length
  }

  removeAll(): Promise<void> {
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
