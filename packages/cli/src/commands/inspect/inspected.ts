import type { BlockEntry, IdentityByKind, KeptStrikes, RedisStore } from '@sluice/core'
import { type UnknownLimits, type UsedLimit, usedLimits } from '@sluice/core/internal'
import { usable } from '../../redis/usable.js'
import { documentFor, type OverrideFor, usedOfSharing } from './of-document.js'

/** The state that Redis stores of an identity. Plain data, as `--json` prints it. */
export interface Inspected {
  /** As it is counted: normalised, and hashed where it is long. */
  readonly identity: string
  readonly limits: readonly UsedLimit[]
  readonly unknown: readonly UnknownLimits[]
  readonly strikes: readonly KeptStrikes[]
  readonly blocks: readonly BlockEntry[]
  readonly lists: readonly string[]
  /** Absent where no document was given. */
  readonly overrides?: readonly OverrideFor[]
}

/** @param document the text of one that is right, if one is given */
export async function inspected(
  store: RedisStore,
  identity: IdentityByKind,
  document: string | undefined,
): Promise<Inspected> {
  const kept = await usable(() => store.kept(identity))
  const { limits, unknown } = await usedLimits(store, kept)
  const { strikes, blocks, lists } = kept
  const rest = { identity: kept.identity, strikes, blocks, lists }
  if (document === undefined) return { ...rest, limits, unknown }
  const of = await documentFor(document, kept.identity)
  const found: UsedLimit[] = []
  const left: UnknownLimits[] = []
  for (const policy of new Set(unknown.map((each) => each.policy))) {
    const keys = unknown.filter((each) => each.policy === policy)
    const used = await usedOfSharing(store, policy, kept.identity, of)
    found.push(...used.flat())
    // As many as there are keys: then none is left that the document does not have.
    if (used.length < keys.length) left.push(...keys)
  }
  return { ...rest, limits: [...limits, ...found], unknown: left, overrides: of.overrides }
}

/** Whether Redis stores nothing at all of it. */
export function isNothing({ limits, unknown, strikes, blocks, lists }: Inspected): boolean {
  return [limits, unknown, strikes, blocks, lists].every(({ length }) => length === 0)
}
