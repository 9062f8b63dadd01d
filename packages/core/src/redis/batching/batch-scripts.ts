import { isCalendar } from '../../store/algorithms.js'
import { type Cell, CONSUME, type Plan } from '../../store/store.js'
import type { ResultReader } from '../scripts/decode.js'
import { type Encoded, encode, encodeOne, type Sending } from '../scripts/encode.js'
import { BANS, CHARGES, decideScriptFor, oneScriptFor, partsOfOp, TURNS } from '../scripts/script.js'
import type { LuaScript } from '../scripts/scripts.generated.js'
import type { RedisBase } from '../slots/base.js'
import type { Batch, Pending } from './batch.js'
import type { KnownWaiters } from './known-waiters.js'
import type { PlanTexts } from './plan-texts.js'

export interface BatchScriptsOptions extends RedisBase {
  readonly texts: PlanTexts
  readonly waiters: KnownWaiters
}

/** The script for a batch, and how to send it. */
export interface BatchScript {
  readonly script: LuaScript
  readonly encoded: () => Encoded
  /** Whether the reply may be empty: an identity is blocked, and nothing was decided. */
  readonly mayBeEmpty: boolean
  /** Whether the reply may say that a request waits for the cell, and nothing was decided. */
  readonly mayNeedRecords: boolean
  /** Whether refusals that count as strikes, which have charged nothing, are decided again by a script that strikes. */
  readonly strikesApart: boolean
}

/** How long after a block was seen batches include their block keys at once. */
const ASSUME_BLOCKED_MS = 1000

/** How long after a strike decisions go to a script that strikes at once, instead of a smaller one first. */
const ASSUME_STRIKES_MS = 1000

/** Maximum scripts for one plan alone, per store. Newer servers cache a few hundred scripts and forget the others. */
const MAX_ONES = 64

/** Chooses the script for a batch: the smallest that is known to suffice. */
export class BatchScripts {
  readonly #options: BatchScriptsOptions
  /**
   * The scripts that decide one charge alone, by parameters and by plan. Null for a plan without room for its own
   * script.
   */
  readonly #ones = new Map<string, LuaScript>()
  readonly #onesByPlan = new WeakMap<Plan, LuaScript | null>()
  /** The same for decisions that check for waiters. */
  readonly #lookingOnesByPlan = new WeakMap<Plan, LuaScript | null>()
  /** By the performance clock. */
  #blockedUntil = 0
  #strikingUntil = 0

  constructor(options: BatchScriptsOptions) {
    this.#options = options
  }

  /** Notes that a refusal was a strike just now. */
  sawStrike(): void {
    this.#strikingUntil = performance.now() + ASSUME_STRIKES_MS
  }

  /**
   * The script for a batch that is sent for the first time, or again without anything new.
   *
   * Without block keys, a script checks the marker, which exists while any identity is blocked; without a marker, a
   * single decision checks its own block key. Decisions that may ban go to a script that cannot strike, unless one did
   * a moment ago. See `BatchRuns` for what these scripts leave undecided.
   */
  choose(batch: Batch, bringsBlockKeys = batch.sentAt < this.#blockedUntil): BatchScript {
    const { prefix, clock, marker, waiters, texts } = this.#options
    const { entries, groups, node, looks } = batch
    const [first] = entries as [Pending]
    const strikes = entries.some(({ request }) => request.strike !== undefined)
    const strikesApart = strikes && this.#canStrikeApart(batch)
    const keys = node === undefined ? 'declared' : 'undeclared'
    const sending = (parts: number, marker: string | undefined): Sending => {
      return { prefix, now: clock?.(), keys, parts, marker, waitingMarker: waiters.markerInScripts }
    }
    const isAlone = entries.length === 1 && !bringsBlockKeys && strikes === strikesApart
    const one = isAlone ? this.#oneFor(batch, first) : undefined
    if (one) {
      const { request } = first
      const encoded = () => encodeOne(request, texts.of(request.plan), sending(looks ? TURNS : 0, marker))
      return { script: one, encoded, mayBeEmpty: true, mayNeedRecords: looks, strikesApart }
    }
    let parts = (strikes && !strikesApart ? BANS : 0) | (looks ? TURNS : 0)
    for (const [plan, group] of groups) {
      parts |= texts.of(plan).parts
      for (const { request } of group) parts |= partsOfOp(request.op) | (request.keep ? CHARGES : 0)
    }
    const byMarker = bringsBlockKeys ? undefined : marker
    const encoded = () => encode(groups, texts.of, sending(parts, byMarker))
    const mayBeEmpty = byMarker !== undefined
    return { script: decideScriptFor(parts), encoded, mayBeEmpty, mayNeedRecords: false, strikesApart }
  }

  /** The script for a batch whose reply says that nothing was decided. Undefined if everything was. */
  chooseAgain(batch: Batch, before: BatchScript, reply: ResultReader): BatchScript | undefined {
    if (before.mayBeEmpty && reply.needsBlockKeys) {
      this.#blockedUntil = performance.now() + ASSUME_BLOCKED_MS
      return this.choose(batch, true)
    }
    if (!before.mayNeedRecords || !reply.needsRecords) return undefined
    for (const { request } of batch.entries) this.#options.waiters.noteWaitersFor(request, performance.now())
    return this.choose(batch)
  }

  /**
   * Whether refusals that count as strikes can be decided again: not if they are charged. False shortly after a strike,
   * when the smaller script is not tried.
   */
  #canStrikeApart({ entries, looks }: Batch): boolean {
    if (looks || performance.now() < this.#strikingUntil) return false
    return entries.every(({ request }) => request.strike === undefined || request.op === CONSUME)
  }

  /** The script for this decision alone, if it is a plain charge of one cell and there is room for its script. */
  #oneFor({ node, looks }: Batch, { request }: Pending): LuaScript | undefined {
    const { op, costs, needs, plan } = request
    const { marker, texts, waiters } = this.#options
    // The script has one block key.
    if (marker === undefined && texts.of(plan).blockSuffixes.length > 1) return undefined
    const chargesOneCell =
      op === CONSUME && !needs && plan.cells.length === 1 && plan.identities === 1 && costs[0] !== 0 && !request.keep
    if (node !== undefined || !chargesOneCell || (looks && waiters.areKnownFor(request))) return undefined
    const [cell] = plan.cells as [Cell]
    // Its parameters change with each period, and each would need a script.
    if (isCalendar(cell)) return undefined
    const onesByPlan = looks ? this.#lookingOnesByPlan : this.#onesByPlan
    let script = onesByPlan.get(plan)
    if (script === undefined) {
      const params = `${cell.kernel} ${cell.limits.length} ${cell.params} ${looks}`
      script = this.#ones.get(params) ?? (this.#ones.size < MAX_ONES ? oneScriptFor(cell, looks ? TURNS : 0) : null)
      if (script) this.#ones.set(params, script)
      onesByPlan.set(plan, script)
    }
    return script ?? undefined
  }
}
