import { CELL_KINDS } from '../store/cell-kinds.js'
import type { Cell, ResolvedLimit } from '../store/store.js'
import { hashOf } from '../util/hash.js'
import { carriedLogId } from './carry.js'
import { leasedId, leasedWindow } from './limits/lease.js'
import type { Limit, Resolution } from './limits/limit.js'
import type { TierOf } from './plan.js'

/** Limits as a policy has resolved them, each list in the order in which they were written. */
export interface LimitsOfCells {
  readonly definitions: readonly Limit[]
  readonly resolutions: readonly Resolution[]
  readonly resolved: readonly ResolvedLimit[]
  /** Which key each of them is counted on. */
  readonly keyOf: readonly number[]
  readonly tier: TierOf | undefined
  readonly isRelaxed: boolean
}

/**
 * One cell per limit, but one log for all log limits on the same key that nothing sets apart; likewise the cells of limits that
 * take little room are joint.
 */
export function cellsFor(limits: LimitsOfCells): readonly Cell[] {
  const cells = new Cells()
  const done = new Set<number>()
  for (const i of limits.resolutions.keys()) {
    if (done.has(i)) continue
    const members = membersWith(limits, i)
    for (const member of members) done.add(member)
    if (joinsLog(limits, i)) cells.add(logCell(limits, members))
    else if (members.length === 1) cells.add(cellOf(limits, i))
    else cells.addJoint(members.map((member) => cellOf(limits, member)))
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
    // In an order of their own: how limits are written makes no difference to the key.
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

/** The limits that share a cell, or a key, with one of them: itself among others. */
function membersWith(limits: LimitsOfCells, i: number): readonly number[] {
  const way = [joinsLog, isJoint].find((joins) => joins(limits, i))
  if (!way) return [i]
  const { keyOf, resolutions } = limits
  const start = prefixOf(limits, i)
  return [...resolutions.keys()].filter((j) => way(limits, j) && keyOf[j] === keyOf[i] && prefixOf(limits, j) === start)
}

/** A reserve is of one limit alone, and what tiers share is one limit, so neither joins a log. */
function joinsLog(limits: LimitsOfCells, i: number): boolean {
  const { resolutions, definitions } = limits
  return resolutions[i]?.kernel === 'log' && definitions[i]?.reserve === undefined && sharedBy(limits, i) === undefined
}

/**
 * What is joint begins anew where one of them has other numbers. So those whose numbers are a request's to choose are not, nor
 * those by tier; and leases are taken, and counts exchanged, of one limit at a time.
 */
function isJoint({ resolutions, definitions, tier, isRelaxed }: LimitsOfCells, i: number): boolean {
  const { kernel, lease } = resolutions[i] as Resolution
  const { limit, window } = definitions[i] as Limit
  const isFixed = typeof limit !== 'function' && typeof window !== 'function'
  return CELL_KINDS[kernel].canBeJoint && isFixed && !lease && !tier && !isRelaxed
}

/** The number of a limit that stands in several tiers. */
function sharedBy({ definitions, tier }: LimitsOfCells, i: number): number | undefined {
  return tier?.shared.get(definitions[i] as Limit)
}

/** Tiers keep state of their own, except for limits that they share; so do policies that are decided as one. */
function prefixOf(limits: LimitsOfCells, i: number): string {
  const { definitions, tier } = limits
  const shared = sharedBy(limits, i)
  if (shared !== undefined) return `~${shared}.`
  const of = definitions[i]?.policy
  return (of === undefined ? '' : `${of}/`) + (tier ? `${tier.name}.` : '')
}

function cellOf(limits: LimitsOfCells, i: number): Cell {
  const { resolutions, resolved, keyOf } = limits
  const { kernel, id, params } = resolutions[i] as Resolution
  const identity = keyOf[i] as number
  return {
    kernel,
    id: prefixOf(limits, i) + id,
    params,
    identity,
    limits: [resolved[i] as ResolvedLimit],
    ...traitsOf(limits, i),
  }
}

function traitsOf({ definitions, resolutions }: LimitsOfCells, i: number): Pick<Cell, 'lease' | 'isCarried'> {
  const { lease } = resolutions[i] as Resolution
  return { ...(lease && { lease }), ...(definitions[i]?.carry !== undefined && { isCarried: true }) }
}

/** A key has its own text for each identity, so a long one is not worth its room. */
const LONGEST_JOINT_ID = 40

function amountOf({ params: [amount = 0] }: Cell): number {
  return amount
}

function jointId(cells: readonly Cell[]): string {
  const ids = cells.map(({ id }) => id).join('+')
  return ids.length > LONGEST_JOINT_ID ? `joint.${hashOf(ids).slice(1)}` : ids
}

/** Sorted, so that the order in which limits are written makes no difference to the key. */
function logCell(limits: LimitsOfCells, members: readonly number[]): Cell {
  const { definitions, resolutions, resolved, keyOf } = limits
  const [first] = members as [number]
  const { lease } = resolutions[first] as Resolution
  const sorted = members
    .map((member) => resolved[member] as ResolvedLimit)
    .sort((a, b) => a.windowMs - b.windowMs || a.limit - b.limit)
  const carry = definitions[first]?.carry
  const windowsMs = sorted.map(({ windowMs }) => leasedWindow(windowMs, lease))
  const most = Math.max(...sorted.map(({ limit }) => limit))
  return {
    kernel: 'log',
    id: prefixOf(limits, first) + leasedId(logId(sorted, carry), lease),
    params: [most, Math.max(...windowsMs), ...sorted.flatMap(({ limit }, i) => [limit, windowsMs[i] as number])],
    identity: keyOf[first] as number,
    limits: sorted,
    ...traitsOf(limits, first),
  }
}

function logId(sorted: readonly ResolvedLimit[], carry: string | undefined): string {
  if (carry === undefined) return `log.${sorted.flatMap(({ limit, windowMs }) => [limit, windowMs]).join('.')}`
  return carriedLogId(
    sorted.map(({ windowMs }) => windowMs),
    carry,
  )
}
