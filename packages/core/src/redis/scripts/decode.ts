import type { ReadReport } from '../../kernels/reply.js'
import type { BlockEntry } from '../../store/blocks.js'
import { CELL_KINDS } from '../../store/cell-kinds.js'
import type { BlockReport, Cell, StoreRequest, StoreResult, StrikeResult } from '../../store/store.js'
import { ReplyReader, unreadable } from './reply-reader.js'
import { ADMITTED, BEGUN, BLOCKED, ELSEWHERE, EQUALS, REFUNDS, REFUSED } from './scripts.generated.js'

/** Equal requests that were decided at once, until each has its result. */
interface Equals {
  /** How many still have no result, and how many of them were admitted. */
  left: number
  admitted: number
  /** Where in the reply the result of the admitted stands, and that of the others. */
  readonly admittedAt: number
  refusedAt: number
}

/** The requests that wait for their turn across processes, as a decision finds them. */
export interface Waiters {
  /** For how many ms more one that goes before it is believed to wait; 0 where none does. */
  readonly behindMs: number
  /** Whether any waits for one of its cells. */
  readonly areForIt: boolean
  /** Whether any may wait for anything. */
  readonly areAnywhere: boolean
}

/** Reads the reply to a batch, one result after the other, in the order in which its requests were encoded. */
export class ResultReader {
  /** Nothing was decided: the marker is there, and block keys are needed. */
  readonly needsBlockKeys: boolean
  readonly #reply: ReplyReader
  readonly #now: number
  /** Of all results: one array per batch. */
  readonly #values: number[] = []
  #equals: Equals | undefined

  constructor(reply: unknown) {
    this.#reply = new ReplyReader(reply)
    this.needsBlockKeys = this.#reply.length === 0
    this.#now = this.#reply.uint48()
  }

  /** Undefined where a key of the decision is not on the node that answered: nothing was charged. */
  next(request: StoreRequest, reports: readonly ReadReport[]): StoreResult | undefined {
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

  /** What follows the result of a decision that looks for waiters. */
  nextWaiters(): Waiters {
    const behindMs = this.#reply.uint16()
    const found = this.#reply.uint8()
    return { behindMs, areForIt: found === 2, areAnywhere: found > 0 }
  }

  /** Each gets the result that it would have got if they had been decided one after the other. */
  #nextOfEquals(equals: Equals, request: StoreRequest, reports: readonly ReadReport[]): StoreResult | undefined {
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
    reports: readonly ReadReport[],
    later: number,
  ): StoreResult | undefined {
    const now = this.#now
    const reply = this.#reply
    const values = this.#values
    const offset = values.length
    let allowed = false
    let refunded: number[] | undefined
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
      const report = reports[c] as ReadReport
      report(reply, values, (plan.cells[c] as Cell).params, now, allowed ? undefined : (needs[c] as number), later)
      if (said !== outcome) {
        refunded ??= reports.map(() => 0)
        refunded[c] = reply.uint56()
        reply.uint48()
      }
    }
    return refunded ? { now, allowed, values, offset, refunded } : { now, allowed, values, offset }
  }

  /** Call it after the last result and before any is passed on: a reply of another length cannot be trusted. */
  end(): void {
    if (this.#equals) throw unreadable('expected no more decisions than were asked for')
    this.#reply.end()
  }
}

/** A block as it is kept, see `encodeBlock`. */
export function blockReport(encoded: string, remainingMs: number): BlockReport {
  const { reason, ban } = decodeBlock(encoded)
  return ban ? { reason, remainingMs, ban: { rung: ban.rung, strikes: ban.strikes } } : { reason, remainingMs }
}

/** What is kept of a block: its reason, and of a ban, which rung it is of and how many strikes there were. */
export type BlockReason = Pick<BlockEntry, 'reason' | 'ban'>

/**
 * The reason of a block as it is kept: of a ban it begins with a byte 0, the rung and how many strikes there were. In the index of
 * blocks, for how many ms the rung is remembered stands behind it: so it can be written again. See shared/rung.lua.
 */
export function encodeBlock({ reason, ban }: BlockReason): string {
  if (!ban) return encodeReason(reason)
  const { rung, strikes, forgetAfterMs } = ban
  return `\0${rung}${forgetAfterMs === undefined ? '' : `/${forgetAfterMs}`} ${strikes} ${reason}`
}

export function decodeBlock(encoded: string): BlockReason {
  const [, rung, forgetAfterMs, strikes, reason = ''] = /^\0(\d+)(?:\/(\d+))? (\d+) (.*)$/s.exec(encoded) ?? []
  if (rung === undefined) return { reason: encoded.startsWith('\0') ? encoded.slice(1) : encoded }
  const ban = { rung: Number(rung), strikes: Number(strikes) }
  return { reason, ban: forgetAfterMs === undefined ? ban : { ...ban, forgetAfterMs: Number(forgetAfterMs) } }
}

/** How the cells of a plan report. */
export function reportsOf(cells: readonly Cell[]): readonly ReadReport[] {
  return cells.map(({ kernel }) => CELL_KINDS[kernel].readReport)
}

/** A reason by hand, as it is kept: never like that of a ban. */
export function encodeReason(reason: string): string {
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
