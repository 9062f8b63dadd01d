import { isUnavailable, type LocalFallback } from '../../limiter/fallback.js'
import type { LimiterEmitter } from '../../limiter/limiter-emitter.js'
import type { Policy, PolicyChoice } from '../../policy/policy.js'
import { BANS } from '../../store/bans.js'
import {
  type BanTerms,
  CONSUME,
  EVERY_POLICY,
  refusalBy,
  requestOf,
  type Store,
  type Strike,
  type StrikeResult,
} from '../../store/store.js'
import { invalidPolicy, SluiceError, show } from '../../util/errors.js'
import type { PartKey } from '../../util/parts.js'
import { propertyOf } from '../../util/property-of.js'
import { decisionOn } from '../../verdict/decision.js'
import { type BanReport, banReport, DECISION, type Verdict, verdictOf } from '../../verdict/verdict.js'
import { drawJitter, POLICY_BAN, type PolicyBan, strikeOf } from './ban-terms.js'
import type { StrikeOptions } from './block-options.js'

/** An identity to strike, with the policy that counts it and its kind in that policy. */
export interface StruckIdentity<Subject> {
  readonly policy: Policy<Subject>
  readonly kind: string
  readonly text: string
}

/** Counts the strikes of one limiter, except those that the store counts with its decisions. */
export class StrikeCounter<Subject> {
  readonly #name: string
  readonly #where: string
  readonly #store: Store
  readonly #fallback: LocalFallback
  readonly #emitter: LimiterEmitter
  /** The policies by the names of their tiers. */
  readonly #policies: ReadonlyMap<string | undefined, Policy<Subject>>
  readonly #isOfStore: boolean

  /** @throws SluiceError `INVALID_POLICY` for a store without bans */
  constructor(policy: PolicyChoice<Subject>, store: Store, fallback: LocalFallback, emitter: LimiterEmitter) {
    const { name, where, all } = policy
    const bans = store[BANS]
    if (!bans || typeof propertyOf(bans, 'strike') !== 'function') {
      invalidPolicy(where, 'ban', 'a store that has strike() in store[BANS]', store)
    }
    this.#name = name
    this.#where = where
    this.#store = store
    this.#fallback = fallback
    this.#emitter = emitter
    this.#policies = new Map(all.map((policy) => [policy.tier, policy]))
    this.#isOfStore = all.some(({ parts }) => parts.get(POLICY_BAN)?.terms.scope === EVERY_POLICY)
    if (this.#isOfStore && propertyOf(bans, 'enforceBansOfEveryPolicy')) bans.enforceBansOfEveryPolicy?.()
  }

  /** The strike that a refusal in this tier counts as: see `StoreRequest.strike`. Undefined if it is none. */
  strikeOf(tier: string | undefined, terms: BanTerms, identities: readonly string[]): number | undefined {
    return strikeOf(this.#banOf(tier), terms, identities)
  }

  /** Strikes identities by hand. `kind`: the kind of each; only an identity of the kind that the policy bans is struck. */
  async strike(
    identities: readonly StruckIdentity<Subject>[],
    { weight, reason }: Required<StrikeOptions>,
  ): Promise<BanReport | undefined> {
    const struck = new Map<string, PolicyBan>()
    for (const { policy, kind, text } of identities) {
      const ban = policy.parts.get(POLICY_BAN) as PolicyBan
      if (kind !== ban.by) {
        throw new SluiceError(
          'INVALID_KEY',
          `${this.#where}: strike: expected an identity of the kind that is banned, ${show(ban.by)}, got one of ${show(kind)}`,
        )
      }
      if (ban.covers(text)) struck.set(text, ban)
    }
    const results = await Promise.all(
      [...struck].map(([text, ban]) =>
        this.#send(this.#store, { ...ban.terms, identity: 0 }, text, { weight, reason, jitterMs: drawJitter(ban) }),
      ),
    )
    const barred = results.find((result) => result?.block)
    return barred?.block && banReport(barred.now, barred.block)
  }

  /** @param isRationed whether it strikes once a minute at most, as another site may have caused the request */
  async strikeRefusal(verdict: Verdict, isRationed = false): Promise<Verdict> {
    // Otherwise other requests come first: no limit refused it.
    const isByLimit = verdict.reason === 'limited' && verdict.limits.some(({ allowed }) => !allowed)
    if (!isByLimit || !this.#banOf(verdict.tier).countsRefusals) return verdict
    return barredBy(await this.#strikeFor(verdict, {}, isRationed), verdict)
  }

  async strikeCaught(verdict: Verdict, strike: StrikeOptions): Promise<Verdict> {
    return barredBy(await this.#strikeFor(verdict, strike), verdict)
  }

  async strikeOutcome(verdict: Verdict): Promise<void> {
    await this.#strikeFor(verdict)
  }

  /** Ends a ban that started during an outage. */
  end(identity: string): void {
    const bans = this.#fallback.local?.[BANS]
    void bans?.unblock(this.#name, identity)
    if (this.#isOfStore) void bans?.unblock(EVERY_POLICY, identity)
  }

  /** Counts the strike of a verdict's request; undefined if it is no strike. */
  async #strikeFor(
    verdict: Verdict,
    { weight = 1, reason = '' }: StrikeOptions = {},
    isRationed = false,
  ): Promise<StrikeResult | undefined> {
    const {
      request: { plan, identities },
      by: { store },
    } = verdict[DECISION]
    if (!store || !plan.ban) return undefined
    const ban = this.#banOf(verdict.tier)
    const identity = identities[plan.ban.identity] as string
    if (!ban.covers(identity)) return undefined
    if (isRationed && !(await isFirstInMinute(store, ban, identity))) return undefined
    return this.#send(store, plan.ban, identity, { weight, jitterMs: drawJitter(ban), reason })
  }

  /** A strike whose reply is lost may have counted, so it is not sent again. */
  async #send(store: Store, terms: BanTerms, identity: string, strike: Strike): Promise<StrikeResult | undefined> {
    let isLocal = store !== this.#store
    let result: StrikeResult | undefined
    try {
      result = await store[BANS]?.strike?.(terms, identity, strike)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      isLocal = true
      result = await this.#fallback.deciding?.[BANS]?.strike?.(terms, identity, strike)
    }
    if (result) this.#emitter.struck(this.#name, identity, strike, result, isLocal)
    return result
  }

  #banOf(tier: string | undefined): PolicyBan {
    return (this.#policies.get(tier) as Policy<Subject>).parts.get(POLICY_BAN) as PolicyBan
  }
}

// biome-ignore lint/suspicious/noExplicitAny: of limiters for any subject
export const STRIKE_COUNTER: PartKey<StrikeCounter<any>> = { name: 'strikes' }

async function isFirstInMinute(store: Store, { oncePerMinute: plan }: PolicyBan, identity: string): Promise<boolean> {
  try {
    return (await store.decide(requestOf(CONSUME, plan, [identity], [1]))).allowed
  } catch (error) {
    if (!isUnavailable(error)) throw error
    // Nothing counts these requests now, and others may have caused them.
    return false
  }
}

/** The same request, refused by the block or ban that followed a strike; the verdict itself where there is none. */
function barredBy(struck: StrikeResult | undefined, verdict: Verdict): Verdict {
  if (!struck?.block) return verdict
  const { request, by } = verdict[DECISION]
  return verdictOf(decisionOn(request, refusalBy(struck.block, struck.now), by))
}
