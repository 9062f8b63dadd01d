import { type Cell, CONSUME, type Plan, REFUND } from '../../store/store.js'
import { type Encoded, encode, encodeOne } from '../scripts/encode.js'
import { BANS, decideScriptFor, oneScriptFor, REFUNDS_OR_RENEWS, TURNS } from '../scripts/script.js'
import type { LuaScript } from '../scripts/scripts.generated.js'
import type { RedisBase } from '../slots/base.js'
import type { Batch, Pending } from './batch.js'
import type { KnownWaiters } from './known-waiters.js'
import type { PlanTexts } from './plan-texts.js'

export interface BatchScriptsOptions extends RedisBase {
  readonly texts: PlanTexts
  readonly waiters: KnownWaiters
}

/** How a batch is decided. */
export interface BatchScript {
  readonly script: LuaScript
  readonly encoded: () => Encoded
  /** Whether it may reply that it has decided nothing, because an identity is blocked. */
  readonly mayBeEmpty: boolean
  /** Whether refusals that are strikes, which have charged nothing, are to be decided again by a script that strikes. */
  readonly strikesApart: boolean
}

/** How long after a block was seen batches bring their block keys without asking first. */
const ASSUME_BLOCKED_MS = 1000

/** For how long after a refusal that is a strike decisions are sent to a script that strikes at once, without a try of one that does not. */
const ASSUME_STRIKES_MS = 1000

/** Scripts of one plan alone, per store: newer servers keep some hundreds of scripts, and forget the others. */
const MAX_ONES = 64

/** Chooses the script for a batch: the smallest that can decide it, as far as is known. */
export class BatchScripts {
  readonly #options: BatchScriptsOptions
  /** The scripts that decide one charge alone, by their parameters; and by plan, null where there are enough without its. */
  readonly #ones = new Map<string, LuaScript>()
  readonly #onesByPlan = new WeakMap<Plan, LuaScript | null>()
  /** By the performance clock. */
  #blockedUntil = 0
  #strikingUntil = 0

  constructor(options: BatchScriptsOptions) {
    this.#options = options
  }

  /** An identity was blocked just now. */
  sawBlock(): void {
    this.#blockedUntil = performance.now() + ASSUME_BLOCKED_MS
  }

  /** A refusal was a strike just now. */
  sawStrike(): void {
    this.#strikingUntil = performance.now() + ASSUME_STRIKES_MS
  }

  /**
   * A batch is sent without block keys where a marker says that no identity is blocked; a decision alone asks for its own
   * block key in the same way, where there is no marker. If one is blocked, nothing was decided, and it goes again with
   * block keys; and so do the batches of the next moment. Likewise what may ban: first it is sent to a script that is smaller
   * and cannot strike. What that refuses is charged nowhere, and is decided again, as a later decision, by one that can.
   *
   * Holds in every order in which commands of several stores reach Redis and replies come back
   * (`test/deep/interleavings/blocks.test.ts`): while a block holds in Redis, no decision that reaches it is
   * admitted, and each is charged at most once. That takes a marker that lives as long as any block.
   */
  choose(batch: Batch, bringsBlockKeys = batch.sentAt < this.#blockedUntil): BatchScript {
    const { prefix, clock, marker, waiters, texts } = this.#options
    const { entries, groups, node, looks } = batch
    const [only, ...others] = entries as [Pending, ...Pending[]]
    const strikes = entries.some(({ request }) => request.strike !== undefined)
    const strikesApart = strikes && this.#canStrikeApart(batch)
    const isAlone = others.length === 0 && !bringsBlockKeys && !looks && strikes === strikesApart
    const one = isAlone ? this.#oneFor(batch, only) : undefined
    if (one) {
      const { request } = only
      const encoded = () => encodeOne(request, texts.of(request.plan), prefix, clock?.(), marker)
      return { script: one, encoded, mayBeEmpty: true, strikesApart }
    }
    let parts = (strikes && !strikesApart ? BANS : 0) | (looks ? TURNS : 0)
    for (const [plan, group] of groups) {
      parts |= texts.of(plan).parts
      if (group.some(({ request }) => request.op >= REFUND)) parts |= REFUNDS_OR_RENEWS
    }
    const byMarker = bringsBlockKeys ? undefined : marker
    const keys = node === undefined ? 'declared' : 'undeclared'
    const encoded = () =>
      encode(groups, texts.of, {
        prefix,
        now: clock?.(),
        keys,
        parts,
        marker: byMarker,
        waitingMarker: waiters.markerInScripts,
      })
    return { script: decideScriptFor(parts), encoded, mayBeEmpty: byMarker !== undefined, strikesApart }
  }

  /** Whether refusals that are strikes can be decided again: not if they are charged. Where there was one a moment ago, none is tried without. */
  #canStrikeApart({ entries, looks }: Batch): boolean {
    if (looks || performance.now() < this.#strikingUntil) return false
    return entries.every(({ request }) => request.strike === undefined || request.op === CONSUME)
  }

  /** The script for this decision alone, if it is a plain charge of one cell, and that script one of those that are made. */
  #oneFor({ node }: Batch, { request }: Pending): LuaScript | undefined {
    const { op, costs, needs, plan } = request
    const { marker, texts } = this.#options
    // It knows one block key.
    if (marker === undefined && texts.of(plan).blockSuffixes.length > 1) return undefined
    const isPlain = op === CONSUME && !needs && plan.cells.length === 1 && plan.identities === 1 && costs[0] !== 0
    if (node !== undefined || !isPlain) return undefined
    const [cell] = plan.cells as [Cell]
    let script = this.#onesByPlan.get(plan)
    if (script === undefined) {
      const params = `${cell.kernel} ${cell.limits.length} ${cell.params}`
      script = this.#ones.get(params) ?? (this.#ones.size < MAX_ONES ? oneScriptFor(cell) : null)
      if (script) this.#ones.set(params, script)
      this.#onesByPlan.set(plan, script)
    }
    return script ?? undefined
  }
}
