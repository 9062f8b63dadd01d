import { valueStart } from '../../store/identity.js'
import type { Cell } from '../../store/store.js'
import { hashOf } from '../../util/hash.js'

/**
 * What a key looks like, and what its value does: processes whose layouts differ share nothing, instead of misreading
 * each other. To be raised with every change of either.
 */
export const KEY_LAYOUT = 'v1'

/** The start of every key of a store. */
export function prefixOf(clientPrefix: string, prefix: string): string {
  return `${clientPrefix}${prefix}${KEY_LAYOUT}:`
}

/** Texts that can stand in a key as they are: nothing that steers a slot, a glob or a terminal. */
const PLAIN = /^[A-Za-z0-9_.:@/|=+,~-]{1,64}$/
const LONGEST_ESCAPED = 96

/**
 * An identity as it stands in a Redis key: its kind as it is, and its value as it is where that is safe,
 * percent-escaped where it is short, else `#` and 132 bits of its SHA-256. Different values never get the same
 * text: plain ones hold no `%` or `#`, escaped ones at least one `%` and no `#`.
 */
function escapeIdentity(identity: string): string {
  // Nearly every identity: a kind has nothing to escape but `%`, so it is parsed only where there is a `%`.
  if (PLAIN.test(identity)) return identity
  const start = valueStart(identity)
  return identity.slice(0, start) + escapeValue(identity.slice(start))
}

function escapeValue(value: string): string {
  if (PLAIN.test(value)) return value
  // Lone surrogates have no UTF-8, so they cannot be escaped; hashing UTF-16 keeps them apart.
  if (value.length <= LONGEST_ESCAPED && value.isWellFormed()) {
    const escaped = encodeURIComponent(value).replaceAll('*', '%2A')
    if (escaped.length <= LONGEST_ESCAPED && escaped.includes('%')) return escaped
  }
  return hashOf(value)
}

/** A key up to the end of its hash tag, which is still to be closed: all keys of one identity share a slot. */
export function keyStart(prefix: string, identity: string): string {
  return `${prefix}{${escapeIdentity(identity)}`
}

/** What follows the identity in the key of a cell, which joint cells have in common. */
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

/** What follows the identity in the key of a block. */
export function blockSuffix(policy: string): string {
  return `}:${policy}:block`
}

/** What follows the identity in the key of the record of waiters for a cell. */
export function waitingSuffix(policy: string, { id }: Cell): string {
  return `}:${policy}:${id}${WAITING}`
}

/** How the keys of such records end, and no others. */
export const WAITING = ':waiting'

/** The key that is there while any identity is blocked; not in a cluster, where it would share a slot with few others. */
export function blockMarker(prefix: string): string {
  return `${prefix}blocked`
}

/** The key that is there while any record of waiters is. */
export function waitingMarker(prefix: string): string {
  return blockMarker(prefix) + WAITING
}

/** What follows the identity in the key of its strikes. */
export function strikesSuffix(scope: string): string {
  return `}:${scope}:strikes`
}
