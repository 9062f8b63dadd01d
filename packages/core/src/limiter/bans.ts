import { type Ban, drawJitter, strikeOf } from '../policy/ban.js'
import type { Policy } from '../policy/policy.js'
import type { Subjects } from '../policy/subjects.js'
import type { IdentityByKind, KeyValue } from '../store/identity.js'
import { type BanTerms, EVERY_POLICY, type Store, type Strike, type StrikeResult } from '../store/store.js'
import { invalidPolicy, SluiceError, show } from '../util/errors.js'
import { knownOptions, wholeNumber } from '../util/validate.js'
import { type BanReport, banReport, Verdict } from '../verdict/verdict.js'
import { isUnavailable, type LocalFallback } from './fallback.js'
import type { LimiterEmitter } from './limiter-emitter.js'
import { checkReason, MOST_WEIGHT, type StrikeOptions } from './options.js'

/** The strikes of one limiter, beside those that the store makes with its decisions. */
export class BanKeeper<Subject> {
  readonly #subjects: Subjects<Subject>
  readonly #store: Store
  readonly #fallback: LocalFallback
  readonly #emitter: LimiterEmitter
  /** By the name of the tier. */
  readonly #policies: ReadonlyMap<string | undefined, Policy<Subject>>
  readonly #where: string
  readonly #isOfStore: boolean

  /** @throws SluiceError `INVALID_POLICY` for a store that does not ban */
  constructor(subjects: Subjects<Subject>, store: Store, fallback: LocalFallback, emitter: LimiterEmitter) {
    const { where, all } = subjects.policy
    if (typeof store.strike !== 'function') invalidPolicy(where, 'ban', 'a store that has strike()', store)
    this.#subjects = subjects
    this.#store = store
    this.#fallback = fallback
    this.#emitter = emitter
    this.#where = where
    this.#policies = new Map(all.map((policy) => [policy.tier, policy]))
    this.#isOfStore = all.some(({ ban }) => ban?.terms.scope === EVERY_POLICY)
    if (this.#isOfStore) store.enforceBansOfEveryPolicy?.()
  }

  /** The strike that a refusal in this tier counts as; undefined where it is none. */
  strikeOf(tier: string | undefined, terms: BanTerms, identities: readonly string[]): number | undefined {
    return strikeOf(this.#banOf(tier), terms, identities)
  }

  async strike(identity: KeyValue | IdentityByKind, options: StrikeOptions): Promise<BanReport | undefined> {
    knownOptions(`${this.#where}: strike`, options, ['weight', 'reason'])
    const { weight = 1, reason = '' } = options
    wholeNumber(`${this.#where}: strike`, 'weight', weight, 1)
    if (weight > MOST_WEIGHT) invalidPolicy(`${this.#where}: strike`, 'weight', `at most ${MOST_WEIGHT}`, weight)
    checkReason(this.#where, reason)
    const struck = new Map<string, Ban>()
    for (const { policy, kind, text } of this.#subjects.toStrike(identity)) {
      const ban = policy.ban as Ban
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

  async strikeRefusal(verdict: Verdict): Promise<Verdict> {
    const { store, plan, identities } = Verdict.decisionOf(verdict)
    const ban = this.#banOf(verdict.tier)
    // It is refused because other requests come first: no limit refused it.
    const isByLimit = verdict.reason === 'limited' && verdict.limits.some(({ allowed }) => !allowed)
    if (!store || !plan.ban || !isByLimit || !ban.countsRefusals) return verdict
    const result = await this.#strikeFor(ban, store, plan.ban, identities)
    return result?.block ? Verdict.barred(verdict, result.now, result.block) : verdict
  }

  async strikeCaught(verdict: Verdict, strike: StrikeOptions): Promise<Verdict> {
    const { store, plan, identities } = Verdict.decisionOf(verdict)
    if (!store || !plan.ban) return verdict
    const result = await this.#strikeFor(this.#banOf(verdict.tier), store, plan.ban, identities, strike)
    return result?.block ? Verdict.barred(verdict, result.now, result.block) : verdict
  }

  async strikeOutcome(verdict: Verdict): Promise<void> {
    const { store, plan, identities } = Verdict.decisionOf(verdict)
    if (store && plan.ban) await this.#strikeFor(this.#banOf(verdict.tier), store, plan.ban, identities)
  }

  /** Ends a ban of an outage. */
  end(identity: string): void {
    this.#fallback.unblock(this.#subjects.policy.name, identity)
    if (this.#isOfStore) this.#fallback.unblock(EVERY_POLICY, identity)
  }

  async #strikeFor(
    ban: Ban,
    store: Store,
    terms: BanTerms,
    identities: readonly string[],
    { weight = 1, reason = '' }: StrikeOptions = {},
  ): Promise<StrikeResult | undefined> {
    const identity = identities[terms.identity] as string
    if (!ban.covers(identity)) return undefined
    return this.#send(store, terms, identity, { weight, jitterMs: drawJitter(ban), reason })
  }

  /** A strike whose reply is lost may count or not: it is not sent again. */
  async #send(store: Store, terms: BanTerms, identity: string, strike: Strike): Promise<StrikeResult | undefined> {
    let isLocal = store !== this.#store
    let result: StrikeResult | undefined
    try {
      result = await store.strike?.(terms, identity, strike)
    } catch (error) {
      if (!isUnavailable(error)) throw error
      isLocal = true
      result = this.#fallback.strike(terms, identity, strike)
    }
    if (result) this.#emitter.struck(this.#subjects.policy.name, identity, strike, result, isLocal)
    return result
  }

  #banOf(tier: string | undefined): Ban {
    return (this.#policies.get(tier) as Policy<Subject>).ban as Ban
  }
}
