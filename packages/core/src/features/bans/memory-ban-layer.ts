import type { MemoryBase } from '../../memory/base.js'
import type { MemoryLayer } from '../../memory/layer.js'
import {
  type BanTerms,
  isDecision,
  PEEK,
  type Plan,
  refusalBy,
  STRIDE,
  type StoreRequest,
  type StoreResult,
  type Strike,
  type StrikeResult,
} from '../../store/store.js'
import { type BanListeners, MemoryBans, reportOf } from './memory-bans.js'

/** The layer of blocks, bans and strikes: refuses those who are blocked, and counts refusals towards bans. */
export class MemoryBanLayer implements MemoryLayer {
  #bans: MemoryBans
  readonly #base: MemoryBase
  readonly #next: MemoryLayer
  readonly #listeners: BanListeners

  constructor(base: MemoryBase, next: MemoryLayer, listeners: BanListeners) {
    this.#base = base
    this.#next = next
    this.#listeners = listeners
    this.#bans = new MemoryBans(base.states, listeners)
    base.swept.push(() => this.#bans)
  }

  get bans(): MemoryBans {
    return this.#bans
  }

  decide(request: StoreRequest, now: number): StoreResult {
    const { op, plan, identities, strike } = request
    const mayRefuse = isDecision(op) && this.#bans.blocks.size > 0
    const block = mayRefuse ? this.#bans.holding(plan, identities, now) : undefined
    if (block) return refusalBy(reportOf(block, now), now)
    const result = this.#next.decide(request, now)
    return strike === undefined || result.allowed ? result : this.#strikeRefused(request, result)
  }

  /** A refusal by a limit is a strike. If that starts a ban, the ban becomes the reason. */
  #strikeRefused(request: StoreRequest, result: StoreResult): StoreResult {
    const terms = request.plan.ban
    if (!terms || request.op === PEEK || !isRefusedForNow(request.plan, result)) return result
    const identity = request.identities[terms.identity] as string
    const { now } = result
    const strike = { weight: 1, jitterMs: request.strike as number, reason: '' }
    const block = this.#bans.struck(terms, identity, strike, now)
    return block ? refusalBy(block, now) : result
  }

  strike(terms: BanTerms, identity: string, strike: Strike): StrikeResult {
    return this.#bans.strike(terms, identity, strike, this.#base.now())
  }

  reset(plan: Plan, identities: readonly string[]): void {
    this.#next.reset(plan, identities)
    const { ban } = plan
    if (ban) this.#bans.forgive(ban.scope, identities[ban.identity] as string)
  }

  forget(identity: string): Promise<void> {
    return this.#bans.forget(identity)
  }

  clear(): void {
    this.#bans = new MemoryBans(this.#base.states, this.#listeners)
  }
}

/** Whether a refusal ends with time. A cost that can never fit is refused whatever others do. */
function isRefusedForNow({ reports }: Plan, { values }: StoreResult): boolean {
  for (let at = 0; at < STRIDE * reports; at += STRIDE) if ((values[at + 1] as number) < 0) return false
  return true
}
