import { CELL_KINDS } from '../store/cell-kinds.js'
import type { Cell, ResolvedLimit } from '../store/store.js'
import type { ReadablePlan } from './plan.js'

const made = new WeakMap<ReadablePlan, Map<string, ReadablePlan>>()

/**
 * A plan of those limits alone that are counted on some of the identities of a whole: its cells keep their ids, so that
 * state is shared with the whole. The same object for the same identities, since plans are compared by identity.
 *
 * @param identities which of the whole's, in order
 */
export function planOf(whole: ReadablePlan, identities: readonly number[]): ReadablePlan {
  if (identities.length === whole.identities) return whole
  let parts = made.get(whole)
  if (!parts) {
    parts = new Map()
    made.set(whole, parts)
  }
  const id = identities.join()
  let part = parts.get(id)
  if (!part) {
    part = makePart(whole, identities)
    parts.set(id, part)
  }
  return part
}

function makePart(whole: ReadablePlan, identities: readonly number[]): ReadablePlan {
  const kept = whole.cells.flatMap(({ identity }, c) => (identities.includes(identity) ? [c] : []))
  const limits = whole.cellOf.flatMap((c, i) => (kept.includes(c) ? [i] : []))
  const ofCells = <T>(all: readonly T[]): T[] => kept.map((c) => all[c] as T)
  const ofLimits = <T>(all: readonly T[]): T[] => limits.map((i) => all[i] as T)

  const cells = ofCells(whole.cells).map(
    (cell): Cell => Object.freeze({ ...cell, identity: identities.indexOf(cell.identity) }),
  )
  const resolved = ofLimits(whole.resolved)
  const inResult: ResolvedLimit[] = cells.flatMap((cell) => cell.limits)
  const byteUnits = whole.byteUnits && ofCells(whole.byteUnits)
  const reserves = whole.reserves && ofCells(whole.reserves)
  return Object.freeze({
    policy: whole.policy,
    cells,
    identities: identities.length,
    starts: identities.map((i) => whole.starts[i] as string),
    reports: resolved.length,
    resolved,
    positions: resolved.map((limit) => inResult.indexOf(limit)),
    isSimple: resolved.length === 1 && !resolved[0]?.queue && !whole.sharesTurns,
    hasPermits: cells.some(({ kernel }) => CELL_KINDS[kernel].hasPermits),
    ones: ofCells(whole.ones),
    cellOf: ofLimits(whole.cellOf).map((c) => kept.indexOf(c)),
    byteUnits: byteUnits?.some((unit) => unit !== undefined) ? byteUnits : undefined,
    reserves: reserves?.some((steps) => steps.length > 0) ? reserves : undefined,
    definitions: ofLimits(whole.definitions),
    ...(whole.sharesTurns && { sharesTurns: whole.sharesTurns }),
    // Where the identity that is banned is not among them, nothing can be struck.
    ban:
      whole.ban && identities.includes(whole.ban.identity)
        ? { ...whole.ban, identity: identities.indexOf(whole.ban.identity) }
        : undefined,
  })
}
