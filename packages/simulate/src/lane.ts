import { type Limit, memoryStore, type Store, type Verdict } from '@sluice/core'
import {
  guardByPolicies,
  hasBegun,
  LIMITER_WARNINGS,
  type Outcome,
  type PassOne,
  passThroughGuard,
  propertyOf,
  STORE_WARNINGS,
} from '@sluice/core/internal'
import { BANS, type StoreResult, type StrikeResult } from '@sluice/core/store'
import type { Figures } from './figures/figures.js'
import type { LogRecord } from './record.js'
import { LogTime, settled } from './replay/log-time.js'
import type { Matcher } from './replay/match-by-path.js'
import type { RecordContext } from './replay/record-context.js'

type Parts = Parameters<PassOne<LogRecord>>[0]
type Guard = (context: RecordContext) => Outcome | Promise<Outcome>
type Choice = Parameters<PassOne<LogRecord>>[2]

/** Bounds of the states of one document. */
export interface StateBounds {
  readonly maxKeys: number
  readonly maxBytes: number
}

/**
 * Plays requests by one document: through the guard of live servers, on a store in memory, in the time of the log. Requests come
 * in the order of their arrival.
 */
export class Lane {
  readonly time: LogTime
  readonly figures: Figures
  readonly #store: ReturnType<typeof memoryStore>
  readonly #guard: Guard
  readonly #decidesByLimits = new WeakMap<object, boolean>()
  /** Requests that wait or are handled. */
  #open = 0
  #failure: { readonly error: unknown } | undefined

  constructor(policies: Matcher, figures: Figures, startMs: number, bounds: StateBounds) {
    this.figures = figures
    this.time = new LogTime(startMs)
    const store = memoryStore({
      clock: () => Math.floor(this.time.now()),
      warnings: silent(STORE_WARNINGS),
      ...bounds,
    })
    this.#store = store
    if ([...figures.accounts.byName.values()].some(({ hasBans }) => hasBans)) noteBans(store as Store, figures)
    const options = {
      policies,
      store,
      headers: false as const,
      warnings: silent(LIMITER_WARNINGS),
      ...(figures.accounts.countBytes && { body: { max: Number.MAX_SAFE_INTEGER } }),
    }
    this.#guard = guardByPolicies<LogRecord>(options, { timing: this.time, passOne: this.#pass }) as Guard
  }

  /** States that were forgotten for lack of memory. */
  get forgotten(): number {
    return this.#store.stats?.()?.evicted ?? 0
  }

  /** A request arrives. A promise only where something has to be awaited. */
  play(context: RecordContext): void | Promise<void> {
    const advanced = this.time.advance(context.arrivedAt)
    return advanced ? advanced.then(() => this.#arrive(context)) : this.#arrive(context)
  }

  /**
   * Runs until every request has ended.
   *
   * @throws the error of a request
   */
  async end(): Promise<void> {
    while (this.#open > 0 && this.time.nextAt !== undefined) await this.time.advance(this.time.nextAt)
    this.#check()
  }

  #arrive(context: RecordContext): void | Promise<void> {
    this.figures.arrived(context)
    const outcome = this.#guard(context)
    if (!(outcome instanceof Promise)) {
      this.#conclude(context, outcome)
      return
    }
    this.#open++
    outcome.then(
      (known) => {
        this.#open--
        this.#conclude(context, known)
      },
      (error) => {
        this.#open--
        this.#failure ??= { error }
      },
    )
    return settled().then(() => this.#check())
  }

  /** The error of a resolver, or of a policy that needs something that the log lacks. */
  #check(): void {
    if (this.#failure) throw this.#failure.error
  }

  #conclude(context: RecordContext, { proceed, verdict }: Outcome): void {
    this.figures.concluded(context, proceed, verdict)
    // Otherwise nothing waits for its end.
    if (!context.hasResponse) return
    const ms = proceed ? context.durationMs : 0
    this.#open++
    if (ms > 0) this.time.setTimeout(() => this.#respond(context, true), ms)
    else this.#respond(context, proceed)
  }

  #respond(context: RecordContext, isHandled: boolean): void {
    const { response } = context
    const from = this.time.now()
    response.on('close', () => {
      this.#open--
      const ms = this.time.now() - from
      if (ms > 0) for (const policy of context.slowedBy ?? []) policy.waited(ms)
    })
    if (isHandled) response.respond(context.status, context.bytes)
    else response.respond(REFUSED, 0)
  }

  /** Passes a request through the policies of one set: without the steps of the guard, where nothing but their limits decides. */
  readonly #pass: PassOne<LogRecord> = (parts, context, choice) => {
    const own = context as RecordContext
    own.stepFrom = this.time.now()
    // Overrides may have limits of other algorithms, in the guard of the limits that they replace.
    const of = choice ?? parts
    let decidesByLimits = this.#decidesByLimits.get(of)
    if (decidesByLimits === undefined) {
      decidesByLimits = hasOnlyLimits(parts, own) && !(choice ?? parts.engine.policy).limits.some(mayBookTurns)
      this.#decidesByLimits.set(of, decidesByLimits)
    }
    if (decidesByLimits) return this.#passByLimits(parts, own, choice)
    const outcome = passThroughGuard(parts, own, choice)
    return outcome instanceof Promise ? outcome.then((known) => this.#noted(own, known)) : this.#noted(own, outcome)
  }

  #passByLimits(parts: Parts, context: RecordContext, choice: Choice): Outcome | Promise<Outcome> {
    let verdict: ReturnType<Parts['decider']['decide']>
    try {
      verdict = parts.decider.decide(context, parts.cost as number, choice)
    } catch (error) {
      return parts.handleInvalid(error, parts.cost, context)
    }
    if (!(verdict instanceof Promise)) return this.#outcomeOf(context, verdict)
    return verdict.then(
      (known) => this.#outcomeOf(context, known),
      (error) => parts.handleInvalid(error, parts.cost, context),
    )
  }

  #outcomeOf(context: RecordContext, verdict: Verdict | undefined): Outcome {
    // Not limited, as it has no key.
    if (!verdict) return PROCEEDS
    return this.#noted(context, outcomeOf(verdict))
  }

  /** Counts the outcome of one set of policies. */
  #noted(context: RecordContext, outcome: Outcome): Outcome {
    const { verdict, proceed } = outcome
    if (!verdict) return outcome
    const now = this.time.now()
    const ms = now - context.stepFrom
    context.waitedMs += ms
    this.figures.decided(context, verdict, now, ms, proceed)
    return outcome
  }
}

/** The status of refused requests. */
const REFUSED = 429

/** Of a request that no policy limits, for want of a key. */
const PROCEEDS: Outcome = {
  proceed: true,
  verdict: undefined,
  headers: [],
  reply: undefined,
  error: undefined,
  handler: undefined,
}

/** Of a request that only limits decide on. */
function outcomeOf(verdict: Verdict): Outcome {
  const { allowed: proceed } = verdict
  return {
    proceed,
    verdict,
    headers: PROCEEDS.headers,
    reply: undefined,
    error: undefined,
    handler: undefined,
  }
}

/** Whether the verdict of the limits is the outcome: nothing waits, is refunded, or depends on the response. */
function hasOnlyLimits(parts: Parts, context: RecordContext): boolean {
  const { features, permits, responders, enforcement, cost } = parts
  return (
    !permits &&
    features.every((feature) => propertyOf(feature, 'onlyDecides')?.(context)) &&
    responders.onlyRefuse &&
    enforcement.coversAll &&
    typeof cost === 'number'
  )
}

/** Whether an admission of a limit may be for a later time. */
function mayBookTurns({ algorithm }: Limit): boolean {
  return algorithm === 'leakyBucket'
}

function silent<Code extends string>(codes: readonly Code[]): { readonly [Each in Code]?: boolean } {
  return Object.fromEntries(codes.map((code) => [code, false])) as { [Each in Code]?: boolean }
}

/** Reports each ban that a strike begins. */
function noteBans(store: Store, figures: Figures): void {
  const { decide, [BANS]: bans } = store
  store.decide = (request) => {
    const result = decide.call(store, request) as StoreResult
    const { block } = result
    if (hasBegun(block)) figures.banBegan(request.plan.ban?.scope, block.remainingMs)
    return result
  }
  const strike = bans?.strike
  if (!bans || !strike) return
  bans.strike = (terms, ...rest) => {
    const result = strike.call(bans, terms, ...rest) as StrikeResult
    if (hasBegun(result.block)) figures.banBegan(terms.scope, result.block.remainingMs)
    return result
  }
}
