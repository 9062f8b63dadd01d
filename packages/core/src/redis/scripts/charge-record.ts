import calculateSlot from 'cluster-key-slot'
import type { Calendar } from '../../store/algorithms.js'
import { NEW_CHARGE } from '../../store/kept-charge.js'
import {
  type Cell,
  CONSUME,
  type Keep,
  type KeptCharge,
  type KernelName,
  NO_TERMS,
  type Plan,
  type ResolvedLimit,
  requestOf,
  type StoreRequest,
  UNNAMED,
} from '../../store/store.js'
import { CHARGE_ID_LENGTH } from '../../util/charge-id.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { ResultReader, reportsOf } from './decode.js'
import { chargesSuffix, identityOfRecord, keyStart, recordedIdentity, recordKey } from './keys.js'
import { unreadable } from './reply-reader.js'
import { tagOf } from './slot-tags.js'

/**
 * The record of a kept charge on one slot. Lua writes it in the step of the charge, and marks in it the cells whose charge is taken:
 * see `lua/shared/charges.lua`, which knows its beginning. The rest is the request as two lines of text, and the reply of Redis to it.
 */

/** Bytes before the marks of cells: their number, that of identities, and the end of the record. */
const HEAD = 8
/** Bytes that name the charges of an identity since its last reset. */
export const EPOCH = 12
const NEWLINE = 10
/** The hash tag of records where there is no cluster. */
const NO_SLOT = 'charges'
/** Plans of records that are known by their text. */
const MAX_PLANS = 1000

/** The keys of a kept charge on the slot of its identities: its record, and that by which each identity's ids are reset. */
export function keysOfCharge(prefix: string, { plan, identities, keep }: StoreRequest): string[] {
  const starts = identities.map((identity) => keyStart(prefix, identity))
  const { id = '' } = keep as Keep
  const isOfCluster = id.length > CHARGE_ID_LENGTH
  const tag = isOfCluster ? tagOf(calculateSlot(`${starts[0]}}`)) : NO_SLOT
  return [recordKey(prefix, tag, plan.policy, id), ...starts.map((start) => start + chargesSuffix(plan.policy))]
}

/** The keys of the records of an id. None for a text that is no id of this kind of server. */
export function recordsOf(prefix: string, isCluster: boolean, policy: string, id: string): string[] {
  if (!/^[\w-]{22}(?:[0-9a-z]{3})*$/.test(id)) return []
  const slots = (id.slice(CHARGE_ID_LENGTH).match(/.{3}/g) ?? []).map((slot) => Number.parseInt(slot, 36))
  if (isCluster !== slots.length > 0 || slots.some((slot) => slot >= SLOTS)) return []
  const tags = isCluster ? slots.map(tagOf) : [NO_SLOT]
  return tags.map((tag) => recordKey(prefix, tag, policy, id))
}

const SLOTS = 16_384

/** The end of an id: its slots in a cluster, so that they are found without a search. */
export function slotsText(slots: readonly number[]): string {
  return [...new Set(slots)].map((slot) => slot.toString(36).padStart(3, '0')).join('')
}

type CellText = readonly [
  kernel: KernelName,
  id: string,
  joint: string,
  params: readonly number[],
  identity: number,
  limits: readonly (readonly [unit: string, windowMs: number, capacity: number])[],
  calendar?: Calendar,
]

const texts = new WeakMap<Plan, string>()

/** The text of a request in its record. */
export function recordText({ plan, identities, costs, permitId, keep }: StoreRequest): string {
  const cells = getOrInsert(texts, plan, () => JSON.stringify(plan.cells.map(cellText)))
  const fields = [identities.map(recordedIdentity), costs, permitId, (keep as Keep).forMs]
  return `${JSON.stringify(fields)}\n${cells}\n`
}

function cellText({ kernel, id, joint = '', params, identity, limits, calendar }: Cell): CellText {
  const reported = limits.map(({ unit, windowMs, capacity }) => [unit, windowMs, capacity] as const)
  const text = [kernel, id, joint, params, identity, reported] as const
  return calendar ? [...text, calendar] : text
}

/** Reads a record. @throws SluiceError `STORE_UNAVAILABLE` for a foreign value */
export function readRecord(record: Uint8Array, policy: string, id: string): KeptCharge {
  const [cells = 0, identities = 0] = record
  const from = HEAD + cells + identities * EPOCH
  const middle = record.indexOf(NEWLINE, from)
  const end = record.indexOf(NEWLINE, middle + 1)
  if (middle < 0 || end < 0) throw unreadable('expected the record of a charge')
  const textOf = (start: number, to: number) => Buffer.from(record.subarray(start, to)).toString()
  const [recorded, costs, permitId, forMs] = JSON.parse(textOf(from, middle))
  const plan = planOf(policy, textOf(middle + 1, end), identities)
  const known = (recorded as string[]).map(identityOfRecord)
  const request: StoreRequest = { ...requestOf(CONSUME, plan, known, costs), permitId, fresh: true }
  const reader = new ResultReader(record.subarray(end + 1))
  const result = reader.next(request, reportsOf(plan.cells))
  if (!result) throw unreadable('expected the result of a charge')
  return { request: { ...request, keep: { ...NEW_CHARGE, forMs, id } }, result }
}

const plans = new Map<string, Plan>()

/** The plan of a record: the same object for the same text, as plans are compared by reference. */
function planOf(policy: string, text: string, identities: number): Plan {
  const name = `${policy}\n${text}`
  let plan: Plan | undefined = plans.get(name)
  if (!plan) {
    if (plans.size >= MAX_PLANS) plans.clear()
    const cells = (JSON.parse(text) as CellText[]).map(cellIn)
    plan = {
      policy,
      cells,
      identities,
      starts: Array.from({ length: identities }, () => ''),
      reports: cells.reduce((sum, { limits }) => sum + limits.length, 0),
      ...NO_TERMS,
    }
    plans.set(name, plan)
  }
  return plan
}

function cellIn([kernel, id, joint, params, identity, limits, calendar]: CellText): Cell {
  return {
    kernel,
    id,
    joint: joint === '' ? undefined : joint,
    params,
    identity,
    calendar,
    isCarried: false,
    lease: undefined,
    limits: limits.map(([unit, windowMs, capacity]): ResolvedLimit => {
      return { ...UNNAMED, algorithm: '', limit: capacity, windowMs, capacity, unit }
    }),
  }
}
