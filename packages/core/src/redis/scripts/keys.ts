import { valueStart } from '../../store/identity.js'
import type { Cell } from '../../store/store.js'
import { dropOldest } from '../../util/drop-oldest.js'
import { hashOf } from '../../util/hash.js'

/**
 * The version of the format of keys and values. Processes with different layouts share no state, instead of misreading
 * each other. Increase it with every change of the format.
 */
export const KEY_LAYOUT = 'v1'

/** The start of every key of a store. */
export function prefixOf(clientPrefix: string, prefix: string): string {
  return `${clientPrefix}${prefix}${KEY_LAYOUT}:`
}

/** Texts that need no escaping in a key: without characters that affect slots, globs or terminals. */
const PLAIN = /^[A-Za-z0-9_.:@/|=+,~-]{1,64}$/
const LONGEST_ESCAPED = 96

/**
 * An identity in a Redis key. The kind is unchanged. A safe value is unchanged, a short one is percent-escaped, and
 * others become `#` and 132 bits of their SHA-256. Different values never give the same text: plain ones contain no `%`
 * or `#`, escaped ones at least one `%` and no `#`.
 */
function escapeIdentity(identity: string): string {
  // This is true for nearly every identity. In a kind, only `%` would need escaping, so kinds are parsed only if there
  // is a `%`.
  if (PLAIN.test(identity)) return identity
  if (identity.startsWith(ESCAPED)) return identity.slice(ESCAPED.length)
  const start = valueStart(identity)
  return identity.slice(0, start) + escapeValue(identity.slice(start))
}

/** Marks an identity that is escaped already, as records of charges have them: secrets are in no record. */
const ESCAPED = '\0'

/** The last identities of this process that are hashed in keys, by their texts in records. */
const hashed = new Map<string, string>()
const MAX_HASHED = 10_000

/** An identity for a record in Redis: not one that is hashed in keys. */
export function recordedIdentity(identity: string): string {
  const escaped = escapeIdentity(identity)
  if (!escaped.includes('#')) return identity
  const recorded = ESCAPED + escaped
  if (identity === recorded) return recorded
  // Again, so that the first of them is the one that was used least recently.
  hashed.delete(recorded)
  hashed.set(recorded, identity)
  dropOldest(hashed, MAX_HASHED)
  return recorded
}

/** The identity of a record, by the name under which this process knows it: refusals and waiting requests have that name. */
export function identityOfRecord(recorded: string): string {
  return hashed.get(recorded) ?? recorded
}

function escapeValue(value: string): string {
  if (PLAIN.test(value)) return value
  // Lone surrogates have no UTF-8 form, so they cannot be escaped; a hash of UTF-16 distinguishes them.
  if (value.length <= LONGEST_ESCAPED && value.isWellFormed()) {
    const escaped = encodeURIComponent(value).replaceAll('*', '%2A')
    if (escaped.length <= LONGEST_ESCAPED && escaped.includes('%')) return escaped
  }
  return hashOf(value)
}

/** A key up to the end of its hash tag, without the closing brace. All keys of one identity share a slot. */
export function keyStart(prefix: string, identity: string): string {
  return `${prefix}{${escapeIdentity(identity)}`
}

/** The text after the identity in the key of a cell. Joint cells share it. */
export function cellSuffix(policy: string, { id, joint = id }: Cell): string {
  return `}:${policy}:${joint}`
}

/** Whether a cell is under the key of the one before it in its plan. */
export function sharesKeyWithPrevious(cells: readonly Cell[], c: number): boolean {
  const { joint } = cells[c] as Cell
  return joint !== undefined && cells[c - 1]?.joint === joint
}

/** The first cell of each key of a plan, in order. */
export function firstOfKeys(cells: readonly Cell[]): Cell[] {
  return cells.filter((_, c) => !sharesKeyWithPrevious(cells, c))
}

/** The text after the identity in the key of a block. */
export function blockSuffix(policy: string): string {
  return `}:${policy}:block`
}

/** The text after the identity in the key of a cell's record of waiters. */
export function waitingSuffix(policy: string, { id }: Cell): string {
  return `}:${policy}:${id}${WAITING}`
}

/** The end of the keys of such records, and of no others. */
export const WAITING = ':waiting'

/**
 * The key that exists while any identity is blocked. Not used in a cluster, where it would share a slot with few other
 * keys.
 */
export function blockMarker(prefix: string): string {
  return `${prefix}blocked`
}

/** The key that exists while there is any record of waiters. */
export function waitingMarker(prefix: string): string {
  return blockMarker(prefix) + WAITING
}

/** The text after the identity in the key of its strikes. */
export function strikesSuffix(scope: string): string {
  return `}:${scope}:strikes`
}

/** The text after the identity in the key by which a reset makes the ids of its charges unknown. */
export function chargesSuffix(policy: string): string {
  return `}:${policy}${CHARGES}`
}

/** The end of such keys, and of no others. */
export const CHARGES = ':charges'

/** The key of the record of a charge, in the slot of `tag`. */
export function recordKey(prefix: string, tag: string, policy: string, id: string): string {
  return `${prefix}{${tag}}:${policy}:charge:${id}`
}
