import type { Cell } from '../store/store.js'
import { getOrInsert } from '../util/get-or-insert.js'
import { type ReadablePlan, readablePlan } from './plan.js'

const made = new WeakMap<ReadablePlan, Map<string, ReadablePlan>>()

/**
 * A plan with only the limits that are counted on some identities of a whole plan. Its cells have the same ids, so that it
 * shares state with the whole. The same object for the same identities, since plans are compared by identity.
 *
 * @param identities which of the whole's, in order
 */
export function planOf(whole: ReadablePlan, identities: readonly number[]): ReadablePlan {
  if (identities.length === whole.identities) return whole
  const parts = getOrInsert(made, whole, () => new Map<string, ReadablePlan>())
  const id = identities.join()
  return getOrInsert(parts, id, () => makePart(whole, identities))
}

function makePart(whole: ReadablePlan, identities: readonly number[]): ReadablePlan {
  const chosen = whole.cells.flatMap(({ identity }, c) => (identities.includes(identity) ? [c] : []))
  const limits = whole.cellOf.flatMap((c, i) => (chosen.includes(c) ? [i] : []))
  const ofCells = <T>(all: readonly T[]): T[] => chosen.map((c) => all[c] as T)
  const ofLimits = <T>(all: readonly T[]): T[] => limits.map((i) => all[i] as T)

  const cells = ofCells(whole.cells).map(
    (cell): Cell => Object.freeze({ ...cell, identity: identities.indexOf(cell.identity) }),
  )
  // Without the identity that would be banned, there is none to strike.
  const { ban } = whole
  return readablePlan({
    ...whole,
    cells,
    starts: identities.map((i) => whole.starts[i] as string),
    resolved: ofLimits(whole.resolved),
    cellOf: ofLimits(whole.cellOf).map((c) => chosen.indexOf(c)),
    reserves: whole.reserves && ofCells(whole.reserves),
    calendars: whole.calendars && ofCells(whole.calendars),
    definitions: ofLimits(whole.definitions),
    ban: ban && identities.includes(ban.identity) ? { ...ban, identity: identities.indexOf(ban.identity) } : undefined,
  })
}
