import { CELL_KINDS } from '../../store/cell-kinds.js'
import {
  type Cell,
  CHARGE,
  CONSUME,
  isImpossible,
  PEEK,
  type Plan,
  REFUND,
  RELEASE,
  refusalBy,
  STRIDE,
  type StoreRequest,
  type StoreResult,
} from '../../store/store.js'
import { firstOfKeys } from '../scripts/keys.js'

/** A part of a plan that is decided by itself, such as the cells of one slot, and the positions of its reports in the whole. */
interface Part {
  readonly plan: Plan
  readonly identities: readonly number[]
  readonly cells: readonly number[]
  readonly positions: readonly number[]
}

/**
 * Decides a plan whose keys sit on different slots, which no script may touch together: every slot
 * decides its part all or none, and if one refuses, the others refund what they charged.
 *
 * Holds in every order in which slots may run and answer (`test/deep/interleavings/slots.test.ts`):
 * - At no instant more is admitted than any limit has room for: an admitted request is charged on every slot.
 * - What is refused, blocked or failed is charged nowhere in the end, and is refunded once. Except that a call
 *   whose answer is lost may have run: where it was a charge or a refund, its slot stays charged.
 * - What a slot has refused, when all have answered, is refused: whether the others hear of it or not.
 * - A refusal that is to be charged (`CHARGE`) is charged on every slot, when all have answered; it takes no permits.
 *
 * For the moment between the two phases a part is charged for a request that ends up refused, so another
 * may be refused that would have had room.
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
 * The same for keys of one slot while that moves to another node: some are here and some there, so no script may touch
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
  // A refusal is charged once it is certain, as no slot knows the limits, the blocks or the failure of another; what can never
  // fit is charged nowhere.
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
    // A failure is not delayed by the refunds, and a refusal stays one, whether they succeed or not.
    if (!failure) await all
  }
  if (failure) throw failure.reason
  const result = whole(request, parts, results as StoreResult[], allowed)
  resultsOf.set(result, results as StoreResult[])
  return result
}

/** Charges a refusal on a slot and returns what that leaves. Takes no permits, as a refused request is not in flight. */
async function refusalCharged(
  { plan }: Part,
  first: StoreResult,
  again: (op: StoreRequest['op']) => Promise<StoreResult>,
): Promise<StoreResult> {
  const charge = first.allowed ? first : await again(CHARGE)
  if (charge.allowed && plan.cells.some(({ kernel }) => CELL_KINDS[kernel].hasPermits)) await again(RELEASE)
  const after = first.allowed ? await again(PEEK) : charge
  // Not what decided: a block or room that came meanwhile.
  return after.block || (charge.allowed && !first.allowed) ? first : after
}

/** The results that the result of the whole was put together from: slots have clocks, and a refund needs each one's. */
const resultsOf = new WeakMap<StoreResult, readonly StoreResult[]>()

const partsByPlan = new WeakMap<Plan, Record<string, readonly Part[]>>()

/** The same parts for the same plan and grouping, so that a store can compare plans by identity. */
function knownParts(plan: Plan, grouping: string, make: () => Part[]): readonly Part[] {
  const byGrouping = partsByPlan.get(plan) ?? {}
  partsByPlan.set(plan, byGrouping)
  byGrouping[grouping] ??= make()
  return byGrouping[grouping]
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
    banningPolicy: plan.banningPolicy,
    cells: cells.map((i) => {
      const cell = plan.cells[i] as Cell
      return { ...cell, identity: identities.indexOf(cell.identity) }
    }),
    identities: identities.length,
    starts: identities.map((i) => plan.starts[i] as string),
    reports: positions.length,
    ...(plan.sharesTurns && { sharesTurns: plan.sharesTurns }),
  }
  return { plan: partial, identities, cells, positions }
}

/** The request for each part. */
function partRequests(request: StoreRequest, parts: readonly Part[]): StoreRequest[] {
  const { op, permitId, needs, turn, charge } = request
  const charges = charge && resultsOf.get(charge)
  return parts.map((part, i) => {
    const { plan, identities, cells } = part
    // What was charged as a whole, such as on one master, can still be refunded by parts.
    const own = charges?.length === parts.length ? charges[i] : charge && partResult(part, charge)
    return {
      op,
      plan,
      identities: identities.map((i) => request.identities[i] as string),
      costs: cells.map((i) => request.costs[i] as number),
      ...(needs && { needs: cells.map((i) => needs[i] as number) }),
      permitId,
      // A part's refusal says nothing of the whole.
      fresh: true,
      ...(turn && { turn: { ...turn, cell: cells.indexOf(turn.cell) } }),
      ...(own && { charge: own }),
    }
  })
}

/** What the result of the whole says of a part. */
function partResult({ cells, positions }: Part, { now, allowed, values, offset, refunded }: StoreResult): StoreResult {
  const startOf = (position: number) => offset + position * STRIDE
  return {
    now,
    allowed,
    values: positions.flatMap((position) => values.slice(startOf(position), startOf(position + 1))),
    offset: 0,
    ...(refunded && { refunded: cells.map((c) => refunded[c] as number) }),
  }
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
  return { now, allowed, values, offset: 0, ...(refunded && { refunded }), ...(behindMs > 0 && { behindMs }) }
}
