import { bring } from '../kinds/known.js'
import type { Cell, ResolvedLimit } from '../store/store.js'
import { hashOf } from '../util/hash.js'
import { leasedId, leasedWindow } from './limits/lease.js'
import type { Limit, Resolution } from './limits/limit.js'
import type { TierOf } from './plan.js'
import { idOfUnit } from './units.js'

/** A limit as a policy has resolved it. */
export interface LimitOfCell {
  readonly definition: Limit
  readonly resolution: Resolution
  readonly resolved: ResolvedLimit
  /** Which key it is counted on. */
  readonly identity: number
}

interface Member extends LimitOfCell {
  /** The beginning of its cell's id. */
  readonly prefix: string
  readonly way: 'in a log' | 'joint' | 'alone'
}

/**
 * One cell per limit, except for two cases. All log limits of one unit on the same key with equal traits share one log. The cells of limits
 * that take little room are joint.
 *
 * @param limits in the order in which they were written
 */
export function cellsFor(limits: readonly LimitOfCell[], tier: TierOf | undefined, areAlone: boolean): readonly Cell[] {
  const groups = new Map<unknown, Member[]>()
  for (const limit of limits) {
    const member = memberOf(limit, tier, areAlone)
    const { way, identity, prefix, resolved } = member
    const unit = way === 'in a log' ? idOfUnit(resolved.unit) : ''
    const group = way === 'alone' ? limit : `${way} ${identity} ${prefix}${unit}`
    groups.set(group, [...(groups.get(group) ?? []), member])
  }
  const cells = new Cells()
  for (const members of groups.values()) {
    const [first] = members as [Member]
    if (first.way === 'in a log') cells.add(logCell(members))
    else if (members.length === 1) cells.add(cellOf(first))
    else cells.addJoint(members.map(cellOf))
  }
  return Object.freeze(cells.all)
}

class Cells {
  readonly all: Cell[] = []
  readonly #ids = new Set<string>()

  add(cell: Cell): void {
    this.all.push(Object.freeze({ ...cell, id: this.#freeId(cell.id) }))
  }

  addJoint(members: readonly Cell[]): void {
    // Sorted, so that the order in which limits are written makes no difference to the key.
    const sorted = [...members].sort((a, b) => (a.id === b.id ? amountOf(a) - amountOf(b) : a.id < b.id ? -1 : 1))
    const joint = this.#freeId(jointId(sorted))
    for (const cell of sorted) this.add({ ...cell, id: `${joint}/${cell.id}`, joint })
  }

  /** Equal limits on different keys must not meet where the keys happen to be equal text. */
  #freeId(id: string): string {
    let free = id
    for (let n = 2; this.#ids.has(free); n++) free = `${id}.${n}`
    this.#ids.add(free)
    return free
  }
}

/**
 * A reserve or an estimate concerns one limit alone, and tiers share single limits, so none of these joins a log. Tiers keep state of their own,
 * except for limits that they share; so do policies that are decided as one.
 */
function memberOf(limit: LimitOfCell, tier: TierOf | undefined, areAlone: boolean): Member {
  const { definition, resolution } = limit
  const shared = tier?.shared.get(definition)
  const ownPrefix = (definition.policy === undefined ? '' : `${definition.policy}/`) + (tier ? `${tier.name}.` : '')
  const isOwn = definition.reserve !== undefined || definition.estimate !== undefined
  const isInLog = resolution.kind.kernel === 'log' && !isOwn && shared === undefined
  const isJoint = !tier && !areAlone && canBeJoint(limit)
  return {
    ...limit,
    prefix: shared === undefined ? ownPrefix : `~${shared}.`,
    way: isInLog ? 'in a log' : isJoint ? 'joint' : 'alone',
  }
}

/**
 * A joint cell begins anew where one of its limits changes its numbers. Limits whose numbers depend on the request or its tier
 * are therefore never joint. Neither are limits with leases or exchanged counts, which concern one limit at a time.
 */
function canBeJoint({ definition: { limit, window }, resolution: { kind, lease } }: LimitOfCell): boolean {
  return kind.canBeJoint && typeof limit !== 'function' && typeof window !== 'function' && !lease
}

function cellOf(member: Member): Cell {
  const { prefix, resolution, resolved, identity } = member
  const { kind, id, params } = resolution
  return {
    kernel: bring(kind),
    id: prefix + id,
    params,
    identity,
    limits: [resolved],
    joint: undefined,
    ...traitsOf(member),
  }
}

function traitsOf({ definition, resolution: { lease } }: Member): Pick<Cell, 'lease' | 'isCarried' | 'calendar'> {
  return { lease, isCarried: definition.carry !== undefined, calendar: undefined }
}

/** Each identity has its own text of a key, so a long one would take too much room. */
const LONGEST_JOINT_ID = 40

function amountOf({ params: [amount = 0] }: Cell): number {
  return amount
}

function jointId(cells: readonly Cell[]): string {
  const ids = cells.map(({ id }) => id).join('+')
  return ids.length > LONGEST_JOINT_ID ? `joint.${hashOf(ids).slice(1)}` : ids
}

/** Sorted, so that the order in which limits are written makes no difference to the key. */
function logCell(members: readonly Member[]): Cell {
  const [first] = members as [Member]
  const { prefix, definition, resolution, identity } = first
  const { lease } = resolution
  const sorted = members.map(({ resolved }) => resolved).sort((a, b) => a.windowMs - b.windowMs || a.limit - b.limit)
  const windowsMs = sorted.map(({ windowMs }) => leasedWindow(windowMs, lease))
  const max = Math.max(...sorted.map(({ limit }) => limit))
  return {
    kernel: bring(resolution.kind),
    id: prefix + leasedId(logId(sorted, definition.carry), lease),
    params: [max, Math.max(...windowsMs), ...sorted.flatMap(({ limit }, i) => [limit, windowsMs[i] as number])],
    identity,
    limits: sorted,
    joint: undefined,
    ...traitsOf(first),
  }
}

function logId(sorted: readonly ResolvedLimit[], carry: string | undefined): string {
  const ofUnit = idOfUnit((sorted[0] as ResolvedLimit).unit)
  if (carry === undefined) return `log.${sorted.flatMap(({ limit, windowMs }) => [limit, windowMs]).join('.')}${ofUnit}`
  // As `carriedForm` names a log of one window.
  return `log~${sorted.map(({ windowMs }) => windowMs).join('.')}${ofUnit}${carry}`
}
