import { randomBytes } from 'node:crypto'
import type { BlockPlace } from '../../blocks/given-blocks.js'
import { groupBy } from '../../util/group-by.js'
import { unreadable } from '../scripts/reply-reader.js'
import { readFields, readKeys, runAt, type Server } from '../scripts/run.js'
import { indexClearScript, indexPageScript, indexScript, type LuaScript } from '../scripts/scripts.generated.js'
import { erasedField, fieldOf, type IndexEntry, parsedEntry, SHARDS, shardOf } from './entry.js'
import type { StoreTime } from './store-time.js'

/** The head of a shard: its own fields. */
export interface Head {
  /** Increases with every change. */
  readonly version: number
  /** A random id, drawn when the shard was made. A different id means that the earlier entries were lost. */
  readonly incarnation: string
  /** The salt of hashes that replace erased names, if there is any. */
  readonly salt: string | undefined
  /** Entries up to this instant are void. */
  readonly epoch: number
}

/** A change of an entry, in the form of index.lua. */
export interface Change extends BlockPlace {
  readonly op: 'BLOCK' | 'KEEP' | 'END' | 'ERASE'
  readonly numbers: readonly [number, number, number]
  /** The encoded reason. For `ERASE`, the new field of the entry. */
  readonly encoded: string
  /** The block key and the key of strikes, if the same script may write them. */
  readonly keys: readonly [string, string] | undefined
}

export interface Page {
  readonly now: number
  /** Undefined if the shard does not exist. */
  readonly head: Head | undefined
  /** Whether the given field has the given version. */
  readonly isContinued: boolean
  readonly entries: readonly {
    readonly version: number
    readonly field: string
    readonly entry: IndexEntry | undefined
  }[]
}

export interface Written {
  readonly now: number
  readonly before: number
  readonly head: Head
  /**
   * In the order of the changes: whether each was made, and the index's present entry, if any. An erased entry has no
   * names.
   */
  readonly entries: readonly { readonly isMade: boolean; readonly entry: IndexEntry | undefined }[]
}

export interface BlockIndexOptions extends Server {
  /** The contents of the index. */
  readonly name: 'blocks' | 'lists'
  readonly marker: string | undefined
  readonly time: StoreTime
}

/** Maximum entries of one page, and maximum changes of one script. Redis does nothing else meanwhile. */
export const PAGE = 500
export const MAX_CHANGES = 100

/** The index of blocks, or of lists, in Redis. Reads and writes shards without interpreting their entries. */
export class BlockIndex {
  readonly #options: BlockIndexOptions

  constructor(options: BlockIndexOptions) {
    this.#options = options
  }

  /** Reads the heads of all shards, by number. */
  async heads(): Promise<readonly (Head | undefined)[]> {
    return (await this.#read(Array.from({ length: SHARDS }, (_, shard) => [shard, '']))).map(headOf)
  }

  /** Whether any identity is blocked, if block keys are written beside the index. */
  async hasMarker(): Promise<boolean> {
    const { connection, timeoutMs, marker } = this.#options
    return marker !== undefined && (await readKeys(connection, timeoutMs, [marker]))[0] !== undefined
  }

  async get(policy: string, identity: string): Promise<IndexEntry | undefined> {
    const field = fieldOf(policy, identity)
    const [value] = await this.#read([[shardOf(field), field]])
    return value === undefined ? undefined : parsedEntry(field, value)
  }

  /**
   * Whether an entry that is missing from the index was ended: all entries were, or its identity was forgotten. An
   * entry that was evicted with its shard counts as not ended.
   */
  async hasEnded({ policy, identity, since }: IndexEntry): Promise<boolean> {
    const field = fieldOf(policy, identity)
    const shard = shardOf(field)
    const head = headOf((await this.#read([[shard, '']]))[0])
    if (!head || head.epoch >= since) return head !== undefined
    if (head.salt === undefined) return false
    const erased = erasedField(field, head.salt)
    const [value] = await this.#read([[shard, erased]])
    return ((value && parsedEntry(erased, value)?.since) || 0) >= since
  }

  /** Reads changes after a version. `tail`: the field that had this version. */
  async page(shard: number, after: number, tail = '', max = PAGE): Promise<Page> {
    const reply = await this.#run(indexPageScript, this.#keys(shard), [String(after), String(max), tail])
    const [now, head, isContinued, ...rest] = reply
    const entries: Page['entries'][number][] = []
    for (let i = 0; i + 2 < rest.length; i += 3) {
      const [version, field, value] = rest.slice(i, i + 3) as [string, string, string]
      entries.push({ version: Number(version), field, entry: parsedEntry(field, value) })
    }
    return { now: this.#observe(now), head: headOf(head), isContinued: isContinued === '1', entries }
  }

  /** `epoch`: the epoch that this process knows. */
  async write(shard: number, changes: readonly Change[], epoch: number): Promise<Written> {
    const { marker } = this.#options
    const keys = this.#keys(shard)
    const isBeside = marker !== undefined && changes.every((change) => change.keys !== undefined)
    if (isBeside) keys.push(marker, ...changes.flatMap((change) => change.keys as readonly string[]))
    const args = changes.flatMap(({ policy, identity, op, numbers, encoded }) => [
      fieldOf(policy, identity),
      op,
      ...numbers.map(String),
      encoded,
    ])
    const [now, before, head, ...values] = await this.#run(indexScript, keys, [incarnation(), String(epoch), ...args])
    const known = headOf(head)
    if (!known || values.length !== changes.length) throw unreadable('expected the index of blocks')
    return {
      now: this.#observe(now),
      before: Number(before),
      head: known,
      entries: changes.map((change, i) => {
        const value = values[i] as string
        const isMade = value.startsWith('1')
        return {
          isMade,
          entry: parsedEntry(isMade ? fieldAfter(change) : fieldOf(change.policy, change.identity), value.slice(1)),
        }
      }),
    }
  }

  /**
   * Removes some entries from a shard and voids all earlier knowledge of it. Resolves to their fields and the epoch.
   */
  async clear(shard: number): Promise<{ readonly epoch: number; readonly fields: readonly string[] }> {
    const [now, ...fields] = await this.#run(indexClearScript, this.#keys(shard), [incarnation(), String(PAGE)])
    return { epoch: this.#observe(now), fields }
  }

  #read(fields: readonly (readonly [shard: number, field: string])[]): Promise<(string | undefined)[]> {
    const { connection, timeoutMs } = this.#options
    return readFields(
      connection,
      timeoutMs,
      fields.map(([shard, field]) => [this.#keys(shard)[0] as string, field]),
    )
  }

  async #run(script: LuaScript, keys: string[], args: readonly string[]): Promise<string[]> {
    const reply = await runAt(this.#options, script, keys, args)
    if (!Array.isArray(reply)) throw unreadable('expected the index of blocks')
    return reply.map(String)
  }

  #keys(shard: number): string[] {
    const { prefix, name } = this.#options
    const start = `${prefix}{${name}.${shard}}:.store:`
    return [`${start}index`, `${start}changes`]
  }

  #observe(now: string | undefined): number {
    if (!(Number(now) >= 0)) throw unreadable('expected a time')
    this.#options.time.observe(Number(now))
    return Number(now)
  }
}

/** The changes that one script may make together: those of one shard, and with block keys or without. */
export function groupsOf(changes: readonly Change[]): Iterable<readonly Change[]> {
  const groupOf = (change: Change) => `${shardOf(fieldOf(change.policy, change.identity))} ${change.keys !== undefined}`
  return groupBy(changes, groupOf).values()
}

/** The field of the entry after a change was made. */
export function fieldAfter({ policy, identity, op, encoded }: Change): string {
  return op === 'ERASE' ? encoded : fieldOf(policy, identity)
}

function headOf(text: string | undefined): Head | undefined {
  const [, version, name, salt, epoch] = /^(\d+) ([^\s~]+)(?:~\d+\.([^\s~]+))?(?:~\S*)? (\d+)$/.exec(text ?? '') ?? []
  if (name === undefined) return undefined
  return { version: Number(version), incarnation: name, salt, epoch: Number(epoch) }
}

function incarnation(): string {
  return randomBytes(9).toString('base64url')
}
