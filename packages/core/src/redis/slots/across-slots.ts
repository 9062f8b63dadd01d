import { outcomeOf, type PartOutcome, takesNone } from '../../store/kept-charge.js'
import {
  type Cell,
  CHARGE,
  type ChargeOutcome,
  CONSUME,
  isDecision,
  isImpossible,
  type Keep,
  NO_TERMS,
  PEEK,
  type Plan,
  REFUND,
  RELEASE,
  refusalBy,
  resultOf,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import { countsPermits } from '../../store/units.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import { firstOfKeys } from '../scripts/keys.js'

/**
 * A part of a plan that is decided separately, such as the cells of one slot, with the positions of its reports in the
 * plan.
 */
interface Part {
  readonly plan: Plan
  readonly identities: readonly number[]
  readonly cells: readonly number[]
  readonly positions: readonly number[]
}

/**
 * Decides a plan whose keys are on different slots, which no script may access together. Every slot decides its part
 * all or none; if one refuses, the others refund their charges.
 *
 * Invariants in every order in which slots may run and reply (`test/deep/interleavings/slots.test.ts`):
 * - At no instant are more units admitted than any limit has room for: an admitted request is charged on every slot.
 * - A request that is refused, blocked or failed ends up charged nowhere, and is refunded once. Exception: a call whose
 *   reply is lost may have run. If that was a charge or a refund, its slot may stay charged.
 * - Once all slots have replied, a refusal by one slot is final, whether the refunds of the others arrive or not.
 * - A refusal that must be charged (`CHARGE`) is charged on every slot once all have replied; it takes no permits.
 *
 * Between the two phases, a part may be charged for a request that is refused in the end. Another request may then be
 * refused although it would have had room.
 */
export function decideAcrossSlots(
  given: StoreRequest,
  slots: readonly number[],
  decide: (part: StoreRequest, slot: number) => Promise<StoreResult>,
): Promise<StoreResult> {
  const distinct = [...new Set(slots)]
  return decideInParts(given, partsOf(given.plan, slots), (part, i) => decide(part, distinct[i] as number))
}

/**
 * The same for the keys of a slot that is migrating to another node. The keys are on two nodes, so no script may access
 * two of them. `decide` decides each key alone, without its blocks.
 */
export function decideByKey(
  given: StoreRequest,
  decide: (part: StoreRequest) => Promise<StoreResult>,
): Promise<StoreResult> {
  return decideInParts(given, keysOf(given.plan), decide)
}

async function decideInParts(
  given: StoreRequest,
  parts: readonly Part[],
  decide: (part: StoreRequest, i: number) => Promise<StoreResult>,
): Promise<StoreResult> {
  // A refusal is charged only once it is certain, as no slot knows the limits, blocks or failures of another. A cost
  // that can never fit is charged nowhere.
  const op = given.op !== CHARGE ? given.op : isImpossible(given) ? PEEK : CONSUME
  const request = { ...given, op }
  const requests = partRequests(request, parts)
  const settled = await Promise.allSettled(requests.map(decide))
  const results = settled.map((result) => (result.status === 'fulfilled' ? result.value : undefined))
  const failure = settled.find((result) => result.status === 'rejected')

  const allowed = results.every((result) => result?.allowed)
  if (!allowed && request.op === CONSUME) {
    const isCharged = given.op === CHARGE && !failure && !results.some((result) => result?.block)
    const seconds = parts.map(async (part, i) => {
      const first = results[i]
      if (!first) return
      const again = (op: StoreRequest['op']) => decide({ ...(requests[i] as StoreRequest), op, charge: first }, i)
      if (isCharged) results[i] = await refusalCharged(part, first, again)
      else if (first.allowed) results[i] = { ...(await again(REFUND)), allowed: true }
    })
    const all = Promise.allSettled(seconds)
    // A failure does not wait for the refunds. A refusal remains a refusal, whether they succeed or not.
    if (!failure) await all
  }
  if (failure) throw failure.reason
  const result = whole(request, parts, results as StoreResult[], allowed)
  resultsOf.set(result, results as StoreResult[])
  return result
}

/**
 * Charges a refusal on a slot and returns the result afterwards. Takes no permits, as a refused request is not in
 * flight.
 */
async function refusalCharged(
  { plan }: Part,
  first: StoreResult,
  again: (op: StoreRequest['op']) => Promise<StoreResult>,
): Promise<StoreResult> {
  const charge = first.allowed ? first : await again(CHARGE)
  if (charge.allowed && plan.cells.some(countsPermits)) await again(RELEASE)
  const after = first.allowed ? await again(PEEK) : charge
  // A block or room that appeared meanwhile did not decide the request.
  return after.block || (charge.allowed && !first.allowed) ? first : after
}

/**
 * The results of the parts behind a combined result. Slots have their own clocks, and a refund needs the time of each.
 */
const resultsOf = new WeakMap<StoreResult, readonly StoreResult[]>()

const partsByPlan = new WeakMap<Plan, Map<string, readonly Part[]>>()

/** Returns the same parts for the same plan and grouping, so that a store can compare plans by reference. */
function knownParts(plan: Plan, grouping: string, make: () => Part[]): readonly Part[] {
  const byGrouping = getOrInsert(partsByPlan, plan, () => new Map<string, readonly Part[]>())
  return getOrInsert(byGrouping, grouping, make)
}

function partsOf(plan: Plan, slots: readonly number[]): readonly Part[] {
  return knownParts(plan, slots.map((slot) => slots.indexOf(slot)).join(), () =>
    [...new Set(slots)].map((slot) => {
      const identities = slots.flatMap((other, i) => (other === slot ? [i] : []))
      return part(plan, identities, ({ identity }) => identities.includes(identity))
    }),
  )
}

function keysOf(plan: Plan): readonly Part[] {
  const isOn = (own: Cell) => (cell: Cell) => cell === own || (cell.joint !== undefined && cell.joint === own.joint)
  return knownParts(plan, 'keys', () => firstOfKeys(plan.cells).map((own) => part(plan, [own.identity], isOn(own))))
}

function part(plan: Plan, identities: readonly number[], contains: (cell: Cell) => boolean): Part {
  let next = 0
  const positionsOf = plan.cells.map(({ limits }) => limits.map(() => next++))
  const cells = plan.cells.flatMap((cell, i) => (contains(cell) ? [i] : []))
  const positions = cells.flatMap((i) => positionsOf[i] as number[])
  const partial: Plan = {
    policy: plan.policy,
    cells: cells.map((i) => {
      const cell = plan.cells[i] as Cell
      return { ...cell, identity: identities.indexOf(cell.identity) }
    }),
    identities: identities.length,
    starts: identities.map((i) => plan.starts[i] as string),
    reports: positions.length,
    ...NO_TERMS,
    banningPolicy: plan.banningPolicy,
    sharesTurns: plan.sharesTurns,
  }
  return { plan: partial, identities, cells, positions }
}

/** The request for each part. */
function partRequests(request: StoreRequest, parts: readonly Part[]): StoreRequest[] {
  const { op, permitId, needs, turn, charge, keep } = request
  const charges = charge && resultsOf.get(charge)
  return parts.map((part, i) => {
    const { plan, identities, cells } = part
    // A charge of the whole plan, such as on one master, can still be refunded in parts.
    const partCharge = charges?.length === parts.length ? charges[i] : charge && partResult(part, charge)
    return {
      op,
      plan,
      identities: identities.map((i) => request.identities[i] as string),
      costs: cells.map((i) => request.costs[i] as number),
      needs: needs && cells.map((i) => needs[i] as number),
      permitId,
      // A part's refusal says nothing about the whole request, so the deny cache must not repeat it.
      fresh: true,
      strike: undefined,
      turn: turn && { ...turn, cell: cells.indexOf(turn.cell) },
      charge: partCharge,
      keep: keep && { ...keep, takes: takesOf(keep, cells) },
    }
  })
}

/** The result of a part, taken from the result of the whole. */
function partResult({ cells, positions }: Part, { now, allowed, values, offset, refunded }: StoreResult): StoreResult {
  const startOf = (position: number) => offset + position * STRIDE
  const partValues = positions.flatMap((position) => values.slice(startOf(position), startOf(position + 1)))
  return { ...resultOf(now, allowed, partValues, 0), refunded: refunded && cells.map((c) => refunded[c] as number) }
}

function partOutcome(keep: Keep, { cells }: Part, outcome: ChargeOutcome | undefined): PartOutcome {
  return { takesNone: takesNone({ keep: { ...keep, takes: takesOf(keep, cells) } }), outcome }
}

function takesOf({ takes }: Keep, cells: readonly number[]): boolean[] | undefined {
  return takes && cells.map((c) => takes[c] === true)
}

function whole(
  request: StoreRequest,
  parts: readonly Part[],
  results: readonly StoreResult[],
  allowed: boolean,
): StoreResult {
  const now = Math.min(...results.map((result) => result.now))
  const endOf = ({ now, block }: StoreResult) => (block ? now + block.remainingMs : 0)
  const { block } = results.reduce((last, result) => (endOf(result) > endOf(last) ? result : last))
  if (block) return refusalBy(block, now)
  const behindMs = Math.max(...results.map((result) => result.behindMs ?? 0))
  const values: number[] = new Array(request.plan.reports * STRIDE).fill(0)
  let refunded: number[] | undefined
  parts.forEach(({ positions, cells }, i) => {
    const result = results[i] as StoreResult
    for (const [n, units] of (result.refunded ?? []).entries()) {
      refunded ??= request.plan.cells.map(() => 0)
      refunded[cells[n] as number] = units
    }
    positions.forEach((position, n) => {
      for (let k = 0; k < STRIDE; k++) {
        values[position * STRIDE + k] = result.values[result.offset + n * STRIDE + k] as number
      }
    })
  })
  const { keep, op } = request
  const id = results.every((result) => result.id !== undefined) ? keep?.id : undefined
  const outcomes = (of: Keep) => results.map(({ outcome }, i) => partOutcome(of, parts[i] as Part, outcome))
  return {
    ...resultOf(now, allowed, values, 0),
    refunded,
    behindMs: behindMs > 0 ? behindMs : undefined,
    id: allowed ? id : undefined,
    outcome: keep && !isDecision(op) ? outcomeOf(outcomes(keep)) : undefined,
  }
}
