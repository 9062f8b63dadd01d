import { hashOf } from '../hash.js'
import type { Cell } from '../store.js'

/** Identities that can stand in a key as they are: nothing that steers a slot, a glob or a terminal. */
const PLAIN = /^[A-Za-z0-9_.:@/|=+,~-]{1,64}$/
const LONGEST_ESCAPED = 96

/**
 * An identity as it stands in a Redis key: as it is where that is safe, percent-escaped where it is
 * short, else `#` and 132 bits of its SHA-256. Different identities never get the same text: plain
 * ones hold no `%` or `#`, escaped ones at least one `%` and no `#`.
 */
export function escapeIdentity(identity: string): string {
  if (PLAIN.test(identity)) return identity
  // Lone surrogates have no UTF-8, so they cannot be escaped; hashing UTF-16 keeps them apart.
  if (identity.length <= LONGEST_ESCAPED && identity.isWellFormed()) {
    const escaped = encodeURIComponent(identity).replaceAll('*', '%2A')
    if (escaped.length <= LONGEST_ESCAPED && escaped.includes('%')) return escaped
  }
  return hashOf(identity)
}

/** A key up to the end of its hash tag, which is still to be closed: all keys of one identity share a slot. */
export function keyStart(prefix: string, identity: string): string {
  return `${prefix}{${escapeIdentity(identity)}`
}

/** What follows the identity in the key of a cell. */
export function cellSuffix(policy: string, cell: Cell): string {
  return `}:${policy}:${cell.id}`
}

/** What follows the identity in the key of a block. */
export function blockSuffix(policy: string): string {
  return `}:${policy}:block`
}
