import { type Duration, durationMs } from './duration.js'
import { invalidPolicy, SluiceError, show } from './errors.js'
import type { HttpContext } from './http/context.js'
import { knownOptions } from './limits/checks.js'
import { memoryStore } from './memory/store.js'
import { pause } from './pause.js'
import { POLICY_OPTIONS, Policy, type PolicyOptions, type ReadablePlan } from './policy.js'
import {
  type Answer,
  type Ask,
  type Cell,
  CHARGE,
  CONSUME,
  type Op,
  PEEK,
  REFUND,
  RELEASE,
  RENEW,
  type Store,
} from './store.js'
import { type Charge, Verdict } from './verdict.js'
import { type AcquireOptions, type Asker, acquireOptions, type LineOptions, WaitingLines } from './waiting-lines.js'

export interface LimiterOptions<Subject> extends PolicyOptions<Subject> {
  /** Where state lives. @default a memory store of this limiter's own */
  readonly store?: Store
}

export interface CostOptions {
  /** Units this takes from every limit: whole, 0 or more; 0 peeks. @default 1 */
  readonly cost?: number
}

export interface BlockOptions {
  /** How long: whole milliseconds or a duration such as `'1h'`. */
  readonly for: Duration
  /** Shown in verdicts of blocked requests; up to 200 characters. @default '' */
  readonly reason?: string
}

/**
 * A limiter: one policy on one store.
 *
 * ```ts
 * const limiter = createLimiter({ name: 'mail', store, limit: 20, window: '1m' })
 * const verdict = await limiter.consume('user:42', { cost: 3 })
 * ```
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function createLimiter<Subject = string>(options: LimiterOptions<Subject>): Limiter<Subject> {
  knownOptions('limiter', options, [...POLICY_OPTIONS, 'store'])
  return new Limiter(new Policy(options), options.store ?? memoryStore())
}

/** Names of places taken: unique over processes and over restarts. */
let leases = 0
const holder = crypto.randomUUID().slice(-12)

export class Limiter<Subject = string> {
  readonly #policy: Policy<Subject>
  readonly #store: Store
  readonly #lines = new WaitingLines()
  readonly #ofRequests: boolean

  /** @internal Use `createLimiter`. `ofRequests`: its subjects are HTTP requests, so a string is a key. */
  constructor(policy: Policy<Subject>, store: Store, ofRequests = false) {
    if (typeof store?.decide !== 'function') {
      invalidPolicy(policy.where, 'store', 'memoryStore() or redisStore(client)', store)
    }
    this.#policy = policy
    this.#store = store
    this.#ofRequests = ofRequests
  }

  get name(): string {
    return this.#policy.name
  }

  /** The limits as they were made; a plain `{ limit, window }` shows here which algorithm it became. */
  get limits(): Policy<Subject>['limits'] {
    return this.#policy.limits
  }

  /**
   * Decides, and charges every limit if all have room. Never rejects for a refusal.
   *
   * @throws SluiceError `INVALID_KEY`, `INVALID_COST`, `INVALID_POLICY` (a limit function's result), `STORE_UNAVAILABLE`
   */
  async consume(subject: Subject, options: CostOptions = {}): Promise<Verdict> {
    return this.decide(subject, undefined, options.cost)
  }

  /** What `consume` would answer now. Changes nothing. */
  async peek(subject: Subject, options: CostOptions = {}): Promise<Verdict> {
    return this.decide(subject, undefined, options.cost, PEEK)
  }

  /** @internal `consume` for a request that may have an HTTP context; answers at once where the store can. */
  decide(subject: Subject, context: HttpContext<Subject> | undefined, cost = 1, op?: Op): Verdict | Promise<Verdict> {
    checkCost(this.#policy.where, cost)
    // Key and limit functions written for HTTP say so themselves when there is no request.
    const plan = this.#policy.plan(subject, context as HttpContext<Subject>)
    return this.#ask(plan, this.#identities(subject, context), cost, op)
  }

  #ask(plan: ReadablePlan, identities: readonly string[], cost: number, op?: Op): Verdict | Promise<Verdict> {
    const ask: Ask = {
      op: op ?? (cost === 0 ? PEEK : this.#policy.chargesRefusals ? CHARGE : CONSUME),
      plan,
      identities,
      costs: cost === 1 ? plan.ones : plan.ones.map(() => cost),
      lease: plan.hasLeases ? `${holder}.${(leases++).toString(36)}` : '',
    }
    const answer = this.#store.decide(ask)
    return answer instanceof Promise ? answer.then((late) => verdictOf(plan, ask, late)) : verdictOf(plan, ask, answer)
  }

  /**
   * Gives back what an allowed verdict charged, once, and never more than time has not given back
   * already. Frees its places, too. Resolves to whether this call gave anything back.
   */
  async refund(subject: Subject, verdict: Verdict): Promise<boolean> {
    const charge = this.#chargeOf(verdict)
    if (!charge || charge.refunded) return false
    const { identities } = charge.ask
    if (this.#identities(subject, undefined).some((identity, i) => identity !== identities[i])) {
      throw new SluiceError('INVALID_KEY', `${this.#policy.where}: key: expected the key the verdict was given for`)
    }
    return this.giveBack(verdict)
  }

  /** @internal `refund` by a verdict alone. */
  async giveBack(verdict: Verdict): Promise<boolean> {
    const charge = this.#chargeOf(verdict)
    if (!charge || charge.refunded) return false
    charge.refunded = true
    await this.#store.decide({ ...charge.ask, op: REFUND, charge: charge.answer })
    this.#lines.wake()
    return true
  }

  /** Frees the places that a verdict took in `concurrency` limits; what it charged elsewhere stays charged. */
  async release(verdict: Verdict): Promise<void> {
    const charge = this.#chargeOf(verdict)
    if (!charge?.ask.lease || charge.refunded) return
    await this.#store.decide({ ...charge.ask, op: RELEASE, charge: charge.answer })
    this.#lines.wake()
  }

  /** Holds the places of a verdict for another `ttl`; places already freed or lapsed are not taken again. */
  async renew(verdict: Verdict): Promise<void> {
    const charge = this.#chargeOf(verdict)
    if (!charge?.ask.lease || charge.refunded) return
    await this.#store.decide({ ...charge.ask, op: RENEW, charge: charge.answer })
  }

  /**
   * Waits its turn and resolves when admitted: first in, first out per key within this process.
   *
   * @throws SluiceError `WAIT_EXCEEDED` at once when the wait would exceed `maxWait`, or when it can never succeed;
   * the signal's reason when aborted (a charge already made is given back then).
   */
  // `async`, so that a bad key rejects like everywhere else.
  async acquire(subject: Subject, options: AcquireOptions = {}): Promise<Verdict> {
    const line = acquireOptions(this.#policy.where, options)
    checkCost(this.#policy.where, line.cost)
    const verdict = await this.lineUp(subject, undefined, line)
    if (verdict.delayMs > 0) {
      try {
        await pause(verdict.delayMs, line.signal)
      } catch (error) {
        await this.giveBack(verdict)
        throw error
      }
    }
    return verdict
  }

  /** @internal Waits in the line of its key until admitted. A turn in a queueing limit (`delayMs`) is still to come then. */
  async lineUp(subject: Subject, context: HttpContext<Subject> | undefined, options: LineOptions): Promise<Verdict> {
    const plan = this.#policy.plan(subject, context as HttpContext<Subject>)
    const identities = this.#identities(subject, context)
    const asker: Asker = {
      lines: linesOf(plan, identities),
      decide: (cost, op) => this.#ask(plan, identities, cost, op),
      giveBack: (verdict) => this.giveBack(verdict),
    }
    return this.#lines.admission(this.#policy.where, asker, options)
  }

  /** @internal Whether others wait in line for one of the limits of this subject, in this process. */
  hasLine(subject: Subject, context: HttpContext<Subject> | undefined): boolean {
    if (this.#lines.size === 0) return false
    const plan = this.#policy.plan(subject, context as HttpContext<Subject>)
    return this.#lines.hasAny(linesOf(plan, this.#identities(subject, context)))
  }

  /** Forgets what was charged on a key. Blocks stay. */
  async reset(subject: Subject): Promise<void> {
    const plan = this.#policy.plan(subject, undefined as never)
    await this.#store.reset(plan, this.#identities(subject, undefined))
    this.#lines.wake()
  }

  /** Refuses a key, in every process that shares the store, until `for` from now. A second block replaces the first. */
  async block(key: string, options: BlockOptions): Promise<void> {
    knownOptions(`${this.#policy.where}: block`, options, ['for', 'reason'])
    const { reason = '' } = options
    if (typeof reason !== 'string' || reason.length > 200) {
      invalidPolicy(this.#policy.where, 'reason', 'up to 200 characters', reason)
    }
    const forMs = durationMs(this.#policy.where, 'for', options.for)
    await this.#store.block(this.#policy.name, checkedKey(this.#policy.where, key), forMs, reason)
  }

  /** Ends a block before its time. */
  async unblock(key: string): Promise<void> {
    await this.#store.unblock(this.#policy.name, checkedKey(this.#policy.where, key))
    this.#lines.wake()
  }

  #identities(subject: Subject, context: HttpContext<Subject> | undefined): string[] {
    const { keys, where } = this.#policy
    // A plain string stands for itself, so that `reset('1.2.3.4')` works on a limiter whose key is `byIp()`.
    const named = this.#ofRequests && typeof subject === 'string'
    return keys.map((key) => checkedKey(where, key && !named ? key(subject, context as HttpContext<Subject>) : subject))
  }

  #chargeOf(verdict: Verdict): Charge | undefined {
    if (!(verdict instanceof Verdict))
      invalidPolicy(this.#policy.where, 'verdict', 'a verdict of this limiter', verdict)
    const charge = Verdict.chargeOf(verdict)
    if (charge && charge.ask.plan.policy !== this.#policy.name) {
      invalidPolicy(
        this.#policy.where,
        'verdict',
        'a verdict of this limiter',
        `one of policy ${charge.ask.plan.policy}`,
      )
    }
    return charge
  }
}

/** A name for what each limit is counted in: that is what is waited for. */
function linesOf({ cells, cellOf }: ReadablePlan, identities: readonly string[]): string[] {
  return cellOf.map((c) => {
    const { id, identity } = cells[c] as Cell
    return `${id}\n${identities[identity]}`
  })
}

function verdictOf(plan: ReadablePlan, ask: Ask, answer: Answer): Verdict {
  return new Verdict(plan, ask, answer, answer.allowed && ask.op !== PEEK)
}

function checkCost(where: string, cost: unknown): void {
  if (!Number.isSafeInteger(cost) || (cost as number) < 0) {
    throw new SluiceError('INVALID_COST', `${where}: cost: expected a whole number of at least 0, got ${show(cost)}`)
  }
}

function checkedKey(where: string, key: unknown): string {
  if (typeof key === 'string' && key !== '') return key
  if ((typeof key === 'number' && Number.isFinite(key)) || typeof key === 'bigint') return String(key)
  throw new SluiceError('INVALID_KEY', `${where}: key: expected a non-empty string or a number, got ${show(key)}`)
}
