import { isRange } from '../../blocks/blocked-ranges.js'
import type { BlockPlace } from '../../blocks/given-blocks.js'
import { blockSuffix, keyStart, strikesSuffix } from '../scripts/keys.js'
import { deleteKeys, runAt, type Server } from '../scripts/run.js'
import { blockScript } from '../scripts/scripts.generated.js'
import { type BlockIndex, MAX_CHANGES } from './block-index.js'
import type { IndexEntry } from './entry.js'

/**
 * The keys by which decisions refuse a blocked identity. This class writes them only in a cluster, where the index is
 * on another slot; otherwise the scripts of the index write them. Networks have no such keys.
 */
export class BlockKeys {
  readonly #server: Server

  constructor(server: Server) {
    this.#server = server
  }

  /** The block key of an identity, and the key of its strikes. */
  of(policy: string, identity: string): [string, string] {
    const start = keyStart(this.#server.prefix, identity)
    return [start + blockSuffix(policy), start + strikesSuffix(policy)]
  }

  /** `encoded`: the reason, as `encodeReason` writes it. */
  async set(policy: string, identity: string, forMs: number, encoded: string): Promise<void> {
    if (!this.#server.connection.isCluster || isRange(identity)) return
    const [block] = this.of(policy, identity)
    await runAt(this.#server, blockScript, [block], [String(forMs), encoded])
  }

  async delete(policy: string, identity: string): Promise<void> {
    if (this.#server.connection.isCluster) await this.deleteAll([{ policy, identity }])
  }

  /** Deletes keys, with or without a cluster. */
  async deleteAll(places: readonly BlockPlace[]): Promise<void> {
    const { connection, timeoutMs } = this.#server
    const keys = places.flatMap(({ policy, identity }) => this.of(policy, identity))
    await deleteKeys(connection, timeoutMs, keys)
  }

  /** Writes or deletes the keys of entries in the index, and of ends. */
  async write(entries: readonly IndexEntry[], index: BlockIndex): Promise<void> {
    if (!this.#server.connection.isCluster) return
    const single = entries.filter(({ identity }) => !isRange(identity))
    for (let i = 0; i < single.length; i += MAX_CHANGES) {
      await Promise.all(single.slice(i, i + MAX_CHANGES).map((entry) => this.#write(entry, index)))
    }
  }

  async #write(entry: IndexEntry, index: BlockIndex): Promise<void> {
    const { policy, identity } = entry
    if (entry.isEnded) await this.delete(policy, identity)
    else await this.#set(entry)
    // Another process may have changed the index and then the keys just before.
    const known = await index.get(policy, identity)
    if (entry.isEnded) {
      if (known && !known.isEnded) await this.#set(known)
    } else if (known ? known.isEnded : await index.hasEnded(entry)) await this.delete(policy, identity)
  }

  async #set({ policy, identity, until, encoded }: IndexEntry): Promise<void> {
    await runAt(this.#server, blockScript, this.of(policy, identity), ['0', encoded, String(until)])
  }
}
