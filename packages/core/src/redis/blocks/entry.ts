import { createHash } from 'node:crypto'
import type { BlockPlace } from '../../blocks/given-blocks.js'
import type { BlockEntry } from '../../store/blocks.js'
import { textValue } from '../../store/identity.js'
import { EVERY_POLICY } from '../../store/store.js'
import { decodeBlock } from '../scripts/decode.js'

/** A block or ban, or the end of one, as the index has it. */
export interface IndexEntry extends BlockPlace {
  /** When it ends, by the store's clock. Of one that was ended by hand: until when others may hold it. */
  readonly until: number
  /** The instant of the last change: of two that know different things of an identity, the later is right. */
  readonly since: number
  readonly times: number
  /** Ended by hand before its time. */
  readonly isEnded: boolean
  /** The reason as it is kept, see `encodeBlock`. Of the end of an identity that was forgotten, under its name: the field that the index has it under. */
  readonly encoded: string
  /** Began in this process and was not in the index so far: the index cannot have lost it. */
  readonly isUnwritten?: true
}

/** Parts of the index, each with keys of its own: in a cluster they are on several masters. */
export const SHARDS = 16

/** What the field of an erased entry begins with. An identity has a kind and `=`. */
const ERASED = '["","#'

/**
 * What the end of an identity that was forgotten stands under: a hash of its field, and in which shard that was. Who holds the
 * names can tell that they are meant. The salt keeps tables of hashes that were made elsewhere from being of use.
 */
export function erasedField(field: string, salt: string): string {
  const start = `${shardOf(field)}.${salt}`
  // As scripts of Redis can work it out.
  const hash = createHash('sha1').update(start + field)
  return fieldOf('', `#${start}.${hash.digest('hex')}`)
}

/** The salt of an entry that stands under such a field; undefined of one that has names. */
export function saltOf({ policy, identity }: BlockPlace): string | undefined {
  return policy === '' ? /^#\d+\.([\w-]+)\.[\w-]+$/.exec(identity)?.[1] : undefined
}

/** What an entry stands under; texts with lone surrogates are escaped. */
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

/** Whether what is known of an identity is later than what the index says. */
export function isNewer(known: IndexEntry, entry: IndexEntry): boolean {
  return known.since > entry.since || (known.since === entry.since && known.isEnded && !entry.isEnded)
}

/** Undefined for what is none. */
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
    }
  } catch {
    return undefined
  }
}

/** As users see it. */
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
