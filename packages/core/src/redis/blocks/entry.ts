import { createHash } from 'node:crypto'
import type { BlockPlace } from '../../blocks/given-blocks.js'
import type { BlockEntry } from '../../store/entries.js'
import { textValue } from '../../store/identity.js'
import { EVERY_POLICY } from '../../store/store.js'
import { decodeBlock } from '../scripts/decode.js'

/** A block or ban, or the end of one, in the index. */
export interface IndexEntry extends BlockPlace {
  /**
   * When it ends, by the store's clock. For an entry that was ended by hand: until when other processes may know it.
   */
  readonly until: number
  /** The instant of the last change. If two processes have different entries of an identity, the later one is right. */
  readonly since: number
  readonly times: number
  /** Ended by hand before its time. */
  readonly isEnded: boolean
  /**
   * The encoded reason, see `encodeBlock`. For the end of a forgotten identity, under its name: the field of the end in
   * the index.
   */
  readonly encoded: string
  /** Began in this process and is not yet in the index, so the index cannot have lost it. */
  readonly isUnwritten: true | undefined
}

/** Number of parts of the index. Each has its own keys: in a cluster, they are on several masters. */
export const SHARDS = 16

/** The start of an erased entry's field. An identity, in contrast, has a kind and `=`. */
const ERASED = '["","#'

/**
 * The field for the end of a forgotten identity: a hash of its earlier field, and the shard of that field. A process
 * that knows the names can recognise the end. The salt makes precomputed tables of hashes useless.
 */
export function erasedField(field: string, salt: string): string {
  const start = `${shardOf(field)}.${salt}`
  // Scripts of Redis can compute this hash, too.
  const hash = createHash('sha1').update(start + field)
  return fieldOf('', `#${start}.${hash.digest('hex')}`)
}

/** The salt of an erased entry; undefined for an entry with names. */
export function saltOf({ policy, identity }: BlockPlace): string | undefined {
  return policy === '' ? /^#\d+\.([\w-]+)\.[\w-]+$/.exec(identity)?.[1] : undefined
}

/** The field of an entry; texts with lone surrogates are escaped. */
export function fieldOf(policy: string, identity: string): string {
  return JSON.stringify([policy, identity])
}

export function shardOf(field: string): number {
  const [, shard] = (field.startsWith(ERASED) && /^(\d+)/.exec(field.slice(ERASED.length))) || []
  if (shard !== undefined) return Number(shard) % SHARDS
  let hash = 0x811c9dc5
  for (let i = 0; i < field.length; i++) hash = Math.imul(hash ^ field.charCodeAt(i), 0x01000193)
  return (hash >>> 16) % SHARDS
}

/** Whether a known entry of an identity is later than that of the index. */
export function isNewer(known: IndexEntry, entry: IndexEntry): boolean {
  return known.since > entry.since || (known.since === entry.since && known.isEnded && !entry.isEnded)
}

/** Undefined if the text is not an entry. */
export function parsedEntry(field: string, value: string): IndexEntry | undefined {
  const [, until, since, times, ended, encoded = ''] = /^(\d+) (\d+) (\d+) ([01]) (.*)$/s.exec(value) ?? []
  if (until === undefined) return undefined
  try {
    const [policy, identity] = JSON.parse(field) as [string, string]
    if (typeof policy !== 'string' || typeof identity !== 'string') return undefined
    return {
      policy,
      identity,
      until: Number(until),
      since: Number(since),
      times: Number(times),
      isEnded: ended === '1',
      encoded,
      isUnwritten: undefined,
    }
  } catch {
    return undefined
  }
}

/** The entry as users see it. */
export function blockEntry({ policy, identity, until, since, times, encoded }: IndexEntry): BlockEntry {
  const { kind, value } = textValue(identity)
  const { reason, ban } = decodeBlock(encoded)
  return {
    ...(policy !== EVERY_POLICY && { policy }),
    kind,
    value,
    reason,
    since,
    until,
    times,
    ...(ban && { ban }),
  }
}
