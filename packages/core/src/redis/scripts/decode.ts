import * as bucket from '../../kernels/bucket.js'
import * as counter from '../../kernels/counter.js'
import type { BlockReport, Cell, StoreRequest, StoreResult, StrikeResult } from '../../store/store.js'
import { ReplyReader, unreadable } from './reply-reader.js'
import { type Kind, kindOf } from './script.js'
import { ADMITTED, BEGUN, BLOCKED, ELSEWHERE, EQUALS, REFUNDS, REFUSED } from './scripts.generated.js'

/** Equal asks that were decided at once, until each has its answer. */
interface Equals {
  /** How many are still to be answered, and how many of them were admitted. */
  left: number
  admitted: number
  /** Where in the reply it stands what the admitted are told, and what the others are. */
  readonly admittedAt: number
  refusedAt: number
}

/**
 * Appends to `values` what each limit of a cell reports; in a refusal, which has no receipt, the ms until there are
 * more units instead (-1 never). `need`: what was asked about, in units; undefined where it was admitted. `later`: how many
 * of the units that the state has were charged after the decision, at the same instant.
 */
type Report = (
  reply: ReplyReader,
  values: number[],
  cell: Cell,
  now: number,
  need: number | undefined,
  later: number,
) => void

/** Reads the reply to a batch, one answer after the other, in the order in which its asks were encoded. */
export class Answers {
  /** Nothing was decided: the marker is there, and block keys are needed. */
  readonly needsBlockKeys: boolean
  readonly #reply: ReplyReader
  readonly #now: number
  /** Of all answers: one array per batch. */
  readonly #values: number[] = []
  #equals: Equals | undefined

  constructor(reply: unknown) {
    this.#reply = new ReplyReader(reply)
    this.needsBlockKeys = this.#reply.length === 0
    this.#now = this.#reply.uint48()
  }

  /** Whether the next decision is a refusal by a limit. */
  isNextRefused(): boolean {
    const outcome = this.#reply.uint8()
    this.#reply.at--
    return (outcome & ~REFUNDS) === REFUSED
  }

  /** Undefined where a key of the decision is not on the node that answered: nothing was charged. */
  next(request: StoreRequest, reports: readonly Report[]): StoreResult | undefined {
    if (this.#equals) return this.#nextOfEquals(this.#equals, request, reports)
    const outcome = this.#reply.uint8()
    if (outcome !== EQUALS) {
      this.#reply.at--
      return this.#read(request, reports, 0)
    }
    const left = this.#reply.uint16()
    const admitted = this.#reply.uint16()
    if (left < 2 || admitted > left) throw unreadable('expected some decisions that were made at once')
    const at = this.#reply.at
    this.#equals = { left, admitted, admittedAt: at, refusedAt: at }
    return this.#nextOfEquals(this.#equals, request, reports)
  }

  /** Each gets the result that it would have got if they had been decided one after the other. */
  #nextOfEquals(equals: Equals, request: StoreRequest, reports: readonly Report[]): StoreResult | undefined {
    const reply = this.#reply
    const isAdmitted = equals.admitted > 0
    if (isAdmitted) equals.admitted--
    reply.at = isAdmitted ? equals.admittedAt : equals.refusedAt
    const result = this.#read(request, reports, equals.admitted * (request.costs[0] as number))
    if ((result?.allowed ?? false) !== isAdmitted) throw unreadable('expected as many to be admitted as it says')
    if (isAdmitted) equals.refusedAt = reply.at
    if (--equals.left === 0) this.#equals = undefined
    return result
  }

  #read(
    { plan, costs, needs = costs }: StoreRequest,
    reports: readonly Report[],
    later: number,
  ): StoreResult | undefined {
    const now = this.#now
    const reply = this.#reply
    const values = this.#values
    const offset = values.length
    let allowed = false
    let given: number[] | undefined
    for (let c = 0; c < reports.length; c++) {
      const said = reply.uint8()
      const outcome = said & ~REFUNDS
      if (said === BLOCKED || said === BEGUN) {
        const remainingMs = reply.uint56()
        const reason = reply.text(reply.uint16())
        const block = blockReport(reason, remainingMs)
        return { now, allowed: false, values, offset, block: said === BEGUN ? { ...block, hasBegun: true } : block }
      }
      if (said === ELSEWHERE && c === 0) return undefined
      if (outcome !== ADMITTED && outcome !== REFUSED) throw unreadable(`expected an outcome, got ${said}`)
      // All or none.
      if (c > 0 && allowed !== (outcome === ADMITTED)) throw unreadable('expected one outcome of all limits')
      allowed = outcome === ADMITTED
      const report = reports[c] as Report
      report(reply, values, plan.cells[c] as Cell, now, allowed ? undefined : (needs[c] as number), later)
      if (said !== outcome) {
        given ??= reports.map(() => 0)
        given[c] = reply.uint56()
        reply.uint48()
      }
    }
    return given ? { now, allowed, values, offset, given } : { now, allowed, values, offset }
  }

  /** Call it after the last result and before any is passed on: a reply of another length cannot be trusted. */
  end(): void {
    if (this.#equals) throw unreadable('expected no more decisions than were asked for')
    this.#reply.end()
  }
}

/** A block as it is kept: of a ban its reason begins with a byte 0, the rung and how many strikes there were. See `keptReason`. */
export function blockReport(kept: string, remainingMs: number): BlockReport {
  const [, rung, strikes, reason = ''] = /^\0(\d+) (\d+) (.*)$/s.exec(kept) ?? []
  if (rung === undefined) return { reason: kept.startsWith('\0') ? kept.slice(1) : kept, remainingMs }
  return { reason, remainingMs, ban: { rung: Number(rung), strikes: Number(strikes) } }
}

/** How the cells of a plan report. */
export function reportsOf(cells: readonly Cell[]): readonly Report[] {
  return cells.map((cell) => REPORTS[kindOf(cell)])
}

const REPORTS: Readonly<Record<Kind, Report>> = {
  bucket(reply, values, { params }, now, need, later) {
    const [limit, windowMs, capacity, stepMs] = params as [number, number, number, number]
    const debt = atLeastNone(reply.uint56() - later * windowMs)
    const at = reply.uint48()
    if (at < now) throw unreadable('expected no state older than the decision')
    // While the clock catches up with the state, its waits count from the state's instant.
    const wait = (cost: number) => {
      const ms = bucket.waitFor(debt, at, cost, limit, windowMs, capacity, stepMs)
      return ms > 0 ? ms + at - now : ms
    }
    const remaining = atLeastNone(bucket.remaining(debt, windowMs, capacity))
    if (need === undefined) values.push(remaining, 0, wait(capacity), debt)
    else values.push(remaining, wait(need), wait(capacity), wait(remaining + 1))
  },

  counter(reply, values, { params }, now, need, later) {
    const [limit, windowMs, withRefusals] = params as [number, number, number]
    const count = atLeastNone(reply.uint56() - later)
    const start = reply.uint48()
    const endsIn = start + windowMs - now
    if (endsIn <= 0) throw unreadable('expected a window that has not ended')
    const remaining = withRefusals === 1 ? Math.max(0, limit - count) : atLeastNone(limit - count)
    const reset = count === 0 ? 0 : endsIn
    const wait = (cost: number) => counter.waitFor(count, endsIn, cost, limit)
    if (need === undefined) values.push(remaining, 0, reset, start)
    else values.push(remaining, wait(need), reset, wait(remaining + 1))
  },

  log(reply, values, { params }, now, need, later) {
    const at = reply.uint48()
    const newest = reply.uint48() - 1
    // After the most entries and the longest window, each limit and its window.
    for (let i = 2; i < params.length; i += 2) {
      const count = atLeastNone(reply.uint32() - later)
      const remaining = atLeastNone((params[i] as number) - count)
      const windowMs = params[i + 1] as number
      const reset = newest < 0 ? 0 : Math.max(0, newest + windowMs - now)
      if (need === undefined) values.push(remaining, 0, reset, at)
      else values.push(remaining, reply.uint56() - 1, reset, reply.uint56() - 1)
    }
  },

  segments(reply, values, _, __, need) {
    const room = reply.uint56()
    const reset = reply.uint56()
    const segment = reply.uint48()
    if (need === undefined) values.push(room, 0, reset, segment)
    else values.push(room, reply.uint56() - 1, reset, reply.uint56() - 1)
  },

  concurrency(reply, values, _, __, need) {
    const free = reply.uint56()
    const reset = reply.uint56()
    // The permit id names its permits, so there is no receipt.
    if (need === undefined) values.push(free, 0, reset, 0)
    else values.push(free, reply.uint56() - 1, reset, reply.uint56() - 1)
  },
}

function atLeastNone(units: number): number {
  if (units < 0) throw unreadable('expected no more to be taken than the limit, and no less than none')
  return units
}

/** A reason by hand, as it is kept: never like that of a ban. */
export function keptReason(reason: string): string {
  return reason.startsWith('\0') ? `\0${reason}` : reason
}

/** The reply of strike.lua. */
export function strikeResult(reply: unknown): StrikeResult {
  const [now, ends, reason, begun] = Array.isArray(reply) ? reply.map((text) => String(text)) : []
  if (reason === undefined || !(Number(now) >= 0) || !(Number(ends) >= 0))
    throw unreadable('expected a time and a block')
  const remainingMs = Number(ends) - Number(now)
  if (remainingMs <= 0) return { now: Number(now), block: undefined }
  const block = blockReport(reason, remainingMs)
  return { now: Number(now), block: begun === '1' ? { ...block, hasBegun: true } : block }
}
