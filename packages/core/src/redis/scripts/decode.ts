import type { ReadReport } from '../../kernels/reply.js'
import { CELL_KINDS } from '../../kinds/all.js'
import type { BlockEntry } from '../../store/entries.js'
import {
  type BlockReport,
  blockReport,
  type Cell,
  type ChargeOutcome,
  isDecision,
  PEEK,
  refusalBy,
  resultOf,
  type StoreRequest,
  type StoreResult,
  type StrikeResult,
} from '../../store/store.js'
import { ReplyReader, unreadable } from './reply-reader.js'
import { ADMITTED, BEGUN, BLOCKED, ELSEWHERE, EQUALS, REFUNDS, REFUSED } from './scripts.generated.js'

/** By the numbers of `lua/shared/charges.lua`. */
const OUTCOMES: readonly ChargeOutcome[] = ['unknown', 'done before', 'done']

/** The lengths of replies where nothing was decided: see lua/shared/names.lua. */
const MAY_BE_BLOCKED = 0
const SOMEBODY_WAITS = 1

/** Equal requests that were decided together, until each has its result. */
interface Equals {
  /** Number of requests without a result, and how many of them were admitted. */
  left: number
  admitted: number
  /** Positions in the reply of the result of the admitted requests, and of the others. */
  readonly admittedAt: number
  refusedAt: number
}

/** A decision's report of requests that wait for their turn across processes. */
export interface Waiters {
  /** Remaining ms for which the report of a request that goes before it is trusted; 0 if there is none. */
  readonly behindMs: number
  /** Whether a request waits for one of its cells. */
  readonly areForIt: boolean
  /** Whether any request may wait for any cell. */
  readonly areAnywhere: boolean
}

/** Reads the reply to a batch, result by result, in the order in which the requests were encoded. */
export class ResultReader {
  /** Whether nothing was decided because the marker exists, so that block keys are needed. */
  readonly needsBlockKeys: boolean
  /** Whether nothing was decided because a request waits, so that records of waiters must be read. */
  readonly needsRecords: boolean
  readonly #reply: ReplyReader
  readonly #now: number
  /** The values of all results: one array per batch. */
  readonly #values: number[] = []
  #equals: Equals | undefined

  constructor(reply: unknown) {
    this.#reply = new ReplyReader(reply)
    this.needsBlockKeys = this.#reply.length === MAY_BE_BLOCKED
    this.needsRecords = this.#reply.length === SOMEBODY_WAITS
    this.#now = this.#reply.uint48()
  }

  /** Undefined if a key of the decision is not on the node that replied. Nothing was charged then. */
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

  /** Reads the report of waiters after the result of a decision that checks for them. */
  nextWaiters(): Waiters {
    const behindMs = this.#reply.uint16()
    const found = this.#reply.uint8()
    return { behindMs, areForIt: found === 2, areAnywhere: found > 0 }
  }

  /** Each request gets the result that it would have in a sequence of decisions. */
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

  #read(request: StoreRequest, reports: readonly ReadReport[], later: number): StoreResult | undefined {
    const { plan, costs, needs = costs } = request
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
        const block = blockIn(reason, remainingMs)
        return refusalBy(said === BEGUN ? { ...block, hasBegun: true } : block, now)
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
    const result = resultOf(now, allowed, values, offset)
    result.refunded = refunded
    return request.keep ? this.#ofKept(request, result) : result
  }

  /** Adds the id of a charge that is kept, or the outcome of a change. */
  #ofKept({ op, keep }: StoreRequest, result: StoreResult): StoreResult {
    if (!isDecision(op)) return { ...result, outcome: OUTCOMES[this.#reply.uint8()] ?? 'unknown' }
    return result.allowed && op !== PEEK && keep?.id !== undefined ? { ...result, id: keep.id } : result
  }

  /** Call it after the last result and before passing on any: a reply of unexpected length cannot be trusted. */
  end(): void {
    if (this.#equals) throw unreadable('expected no more decisions than were asked for')
    this.#reply.end()
  }
}

/** The report of an encoded block, see `encodeBlock`. */
export function blockIn(encoded: string, remainingMs: number): BlockReport {
  const { reason, ban } = decodeBlock(encoded)
  return blockReport(reason, remainingMs, ban)
}

/** The encoded part of a block: its reason, and for a ban also its rung and number of strikes. */
export interface BlockReason {
  readonly reason: string
  readonly ban: BlockEntry['ban']
}

/**
 * Encodes the reason of a block. For a ban, it begins with a byte 0, the rung and the number of strikes. In the index
 * of blocks, the ms for which the rung is remembered follow the rung, so that it can be restored. See shared/rung.lua.
 */
export function encodeBlock({ reason, ban }: BlockReason): string {
  if (!ban) return encodeReason(reason)
  const { rung, strikes, forgetAfterMs } = ban
  return `\0${rung}${forgetAfterMs === undefined ? '' : `/${forgetAfterMs}`} ${strikes} ${reason}`
}

export function decodeBlock(encoded: string): BlockReason {
  const [, rung, forgetAfterMs, strikes, reason = ''] = /^\0(\d+)(?:\/(\d+))? (\d+) (.*)$/s.exec(encoded) ?? []
  if (rung === undefined) return { reason: encoded.startsWith('\0') ? encoded.slice(1) : encoded, ban: undefined }
  const ban = { rung: Number(rung), strikes: Number(strikes) }
  return { reason, ban: forgetAfterMs === undefined ? ban : { ...ban, forgetAfterMs: Number(forgetAfterMs) } }
}

/** The report readers of a plan's cells. */
export function reportsOf(cells: readonly Cell[]): readonly ReadReport[] {
  return cells.map(({ kernel }) => CELL_KINDS[kernel].readReport)
}

/** Encodes the reason of a manual block so that it never reads as that of a ban. */
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
  const block = blockIn(reason, remainingMs)
  return { now: Number(now), block: begun === '1' ? { ...block, hasBegun: true } : block }
}
