import { Engine } from '../../limiter/engine.js'
import type { Limiter } from '../../limiter/limiter.js'
import { LimiterEmitter } from '../../limiter/limiter-emitter.js'
import { memoryStore } from '../../memory/store.js'
import { Policy, type PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import type { Store } from '../../store/store.js'
import { invalidPolicy, SluiceError, show } from '../../util/errors.js'
import { knownOptions } from '../../util/validate.js'
import { LIMITER_WARNINGS, type LimiterWarning, Warnings } from '../../util/warnings.js'
import { type Later, whenKnown } from '../../util/when-known.js'
import { DECISION } from '../../verdict/verdict.js'
import { anonymousBy } from '../identity/anonymous.js'
import { byIp } from '../identity/ip.js'
import { differInNumbers } from './differ-in-numbers.js'
import { InvalidRequests } from './invalid.js'
import { RATE_LIMIT_OPTIONS, type RateLimitOptions } from './options.js'
import { type Outcome, SKIPPED } from './outcome.js'
import { type GuardParts, guardParts, requestLimiter } from './parts.js'
import { PoliciesByHand } from './policies-by-hand.js'
import type { MatchedPolicies, PolicySource } from './policy-source.js'
import { warnedOnce } from './warned-once.js'

/** What policies say themselves. */
const OF_POLICIES = [
  'limit',
  'window',
  'limits',
  'key',
  'tiers',
  'tier',
  'onDeny',
  'priority',
  'sharedTurns',
  'ban',
  'count',
  'enforce',
] as const

/** The way of a request through the guard of one limiter. `choice`: its limits, where they differ from the guard's in numbers. */
type Pass<Request> = (
  guard: GuardParts<Request>,
  context: HttpContext<Request>,
  choice?: PolicyChoice<Request>,
) => Later<Outcome>

/** The guard behind policies that are data. */
export interface PoliciesGuard<Request> {
  readonly run: (context: HttpContext<Request>) => Later<Outcome>
  readonly limiter: Limiter<Request>
  readonly requestProperty: string
}

/**
 * For each set of policies that match a request together it makes a limiter once, on one store and under one name: what such
 * limiters have in common they count together. `pass`: the way of a request through one of them.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function guardByPolicies<Request>(
  options: RateLimitOptions<Request>,
  pass: Pass<Request>,
): PoliciesGuard<Request> {
  knownOptions('rateLimit', options, RATE_LIMIT_OPTIONS)
  const { policies, ...given } = options
  const where = `policies ${show(given.name ?? 'default')}`
  for (const option of OF_POLICIES) {
    if (given[option] === undefined) continue
    throw new SluiceError(
      'INVALID_POLICY',
      `${where}: ${option}: expected none beside policies, which say it themselves`,
    )
  }
  if (typeof policies?.match !== 'function') {
    invalidPolicy(where, 'policies', 'what `await policies.from(…)` of @sluice/policies returns', policies)
  }
  const own = { ...given, store: given.store ?? memoryStore(), name: given.name ?? 'default' }
  const emitter = new LimiterEmitter(where)
  const limiters = new LimitersOfPolicies(own, emitter, pass)
  const warnings = new Warnings(where, LIMITER_WARNINGS, own.warnings, emitter.listeners)
  const invalid = new InvalidRequests<Request>({ where, all: [] }, own.onInvalid ?? 'reject', false, warnings)
  // What is wrong with an option shows now, and not with the first request.
  for (const matched of policies.byName.values()) limiters.of(matched)
  return {
    run: (context) => {
      const refuse = (error: unknown) => invalid.handle(error, undefined, context)
      let matched: ReturnType<typeof policies.match>
      try {
        matched = policies.match(context)
      } catch (error) {
        return refuse(error)
      }
      if (matched instanceof Promise) return matched.then((known) => limiters.run(known, context), refuse)
      return limiters.run(matched, context)
    },
    limiter: limiterByHand(where, policies, own, emitter, warnings),
    requestProperty: own.requestProperty ?? 'rateLimit',
  }
}

/** How requests of a match are decided. `choice`: by which limits, where the guard was made with other numbers. */
interface Made<Request> {
  readonly parts: GuardParts<Request>
  readonly choice: PolicyChoice<Request> | undefined
}

class LimitersOfPolicies<Request> {
  readonly #own: RateLimitOptions<Request>
  readonly #emitter: LimiterEmitter
  readonly #made = new WeakMap<MatchedPolicies<Request>, Made<Request>>()
  readonly #pass: Pass<Request>
  readonly #isNew = warnedOnce()

  constructor(own: RateLimitOptions<Request>, emitter: LimiterEmitter, pass: Pass<Request>) {
    this.#own = own
    this.#emitter = emitter
    this.#pass = pass
  }

  of(matched: MatchedPolicies<Request>): Made<Request> {
    let made = this.#made.get(matched)
    if (!made) {
      made = this.#make(matched)
      this.#made.set(matched, made)
    }
    return made
  }

  #make({ options, base }: MatchedPolicies<Request>): Made<Request> {
    if (!base || !differInNumbers(base.options, options)) {
      const { onExhausted, ...own } = this.#own
      // Said for those of the policies that count bytes of responses.
      const countsResponses = options.limits?.some(({ unit }) => unit === 'response-bytes')
      const parts = guardParts(
        { ...own, ...(countsResponses && onExhausted !== undefined && { onExhausted }), ...options },
        { emitter: this.#emitter, isNew: this.#isNew },
      )
      // Requests of a few clients say nothing of the set-up.
      return { parts: base ? { ...parts, advice: this.of(base).parts.advice } : parts, choice: undefined }
    }
    const { name } = this.#own
    const { limits = [], sharedTurns } = options
    const more = { ...(name !== undefined && { name }), ...(sharedTurns !== undefined && { sharedTurns }) }
    return {
      parts: this.of(base).parts,
      choice: new Policy<Request>({ key: byIp<Request>(), limits, ...more }),
    }
  }

  run(matched: MatchedPolicies<Request> | undefined, context: HttpContext<Request>): Later<Outcome> {
    if (!matched) return SKIPPED
    const { reported, next } = matched
    // Asked first, in the same turn of the event loop: a refusal of the others does not keep it from counting.
    const aside = reported && this.run(reported, context)
    const { parts, choice } = this.of(matched)
    const own = this.#pass(parts, context, choice)
    const outcome = next ? whenKnown(own, (first) => this.#goOn(first, parts, next, context)) : own
    if (!aside) return outcome
    return whenKnown(aside, ({ verdict }) =>
      whenKnown(outcome, (known) => (known.verdict ? known : { ...known, verdict })),
    )
  }

  #goOn(
    first: Outcome,
    { engine }: GuardParts<Request>,
    next: MatchedPolicies<Request>,
    context: HttpContext<Request>,
  ): Later<Outcome> {
    if (!first.proceed) return first
    const { verdict, headers } = first
    return whenKnown(this.run(next, withHeaders(context, headers)), (second) => {
      const names = new Set(second.headers.map(([name]) => name.toLowerCase()))
      const kept = headers.filter(([name]) => !names.has(name.toLowerCase()))
      const both = { ...second, verdict: second.verdict ?? verdict, headers: [...kept, ...second.headers] }
      if (second.proceed || !verdict) return both
      // Where the store cannot be reached, the charge stays.
      return whenKnown(
        engine.charges.refund(verdict[DECISION]).catch(() => false),
        () => both,
      )
    })
  }
}

/** A request on whose response these headers are by now. */
function withHeaders<Request>(context: HttpContext<Request>, headers: Outcome['headers']): HttpContext<Request> {
  if (headers.length === 0) return context
  const sent = new Map(headers.map(([name, value]) => [name.toLowerCase(), value]))
  const getResponseHeader = (name: string) => sent.get(name.toLowerCase()) ?? context.getResponseHeader(name)
  return Object.create(context, { getResponseHeader: { value: getResponseHeader } })
}

function limiterByHand<Request>(
  where: string,
  policies: PolicySource<Request>,
  own: RateLimitOptions<Request> & { readonly name: string; readonly store: Store },
  emitter: LimiterEmitter,
  warnings: Warnings<LimiterWarning>,
): Limiter<Request> {
  const choice = new PoliciesByHand(where, own.name, policies)
  const anonymous = anonymousBy<Request>(where, own.anonymous ?? 'error', warnings)
  return requestLimiter(new Engine(choice, own.store, own, emitter), undefined, anonymous)
}
