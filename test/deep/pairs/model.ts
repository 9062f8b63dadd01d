import { BanOracle } from '../../support/oracle/bans.js'
import { type Case, costIn, type LimitOf, type PolicyOf, type Request, type Units, unitOf } from './case.js'
import { Count, type Entry, type Range, Undecided } from './count.js'

/**
 * What a client may get, by docs/guarantees.md and the pages of the features: the least and the most. It shares no code with the
 * packages. Where least and most differ, a comment names the page.
 */

/** What is expected of a decision. */
export interface Expected {
  /** Undefined where either is right. */
  readonly allowed: boolean | undefined
  readonly reason?: string | undefined
  readonly retryAfterMs?: Range | undefined
  readonly delayMs?: Range
  /** Of each limit. None where a block, a ban or a list decides. */
  readonly limits?: readonly LimitExpected[]
}

export interface LimitExpected {
  readonly remaining: Range
  /** Undefined for a cost that never fits. */
  readonly retryAfterMs: Range | undefined
  readonly resetAfterMs: Range
}

/** A charge of one limit. */
interface Charged {
  readonly policy: PolicyOf
  readonly count: Count
  readonly unit: string
  readonly units: number
  /** Undefined where nothing was charged. */
  readonly entry: Entry | undefined
  /** Whether the policy has refused the request, which it only reports. Only a meter charges then: docs/units.md, Meter a stream. */
  readonly isRefused: boolean
  /** Whether it is settled or refunded. */
  isDone: boolean
}

/** An admitted request, with what it holds. */
export interface Held {
  readonly charges: readonly Charged[]
  readonly by: Request
  readonly process: number
  isReleased: boolean
  hasEnded: boolean
  /** When its id expires. */
  until: number
}

/** What one limit needs of a request. */
interface Need {
  readonly count: Count
  readonly unit: string
  readonly cost: number
  readonly need: number
  readonly reserved: number
}

const EVERYONE = 'everyone'

export class Model {
  now: number
  readonly #case: Case
  readonly #counts = new Map<string, Count>()
  readonly #bans = new Map<string, BanOracle>()
  readonly #blocks = new Map<string, number>()
  readonly #held: Held[] = []

  constructor(of: Case, now: number) {
    this.#case = of
    this.now = now
  }

  /** Whether a request may proceed. Undefined where either is right. */
  mayProceed(request: Request): boolean | undefined {
    const all = this.#deciding(request)
    if (all === 'invalid') return false
    const allowed = all.map((p) => this.expect(request, p).allowed)
    return allowed.includes(false) ? false : allowed.includes(undefined) ? undefined : true
  }

  /** The policies that can refuse a request, in the order in which they are decided: those decided later come last. */
  #deciding(request: Request): readonly number[] | 'invalid' {
    const all = [...this.#case.policies.keys()].filter((p) => this.#applies(p, request))
    const enforced = all.filter((p) => !isReported(this.#policy(p)))
    if (request.client === undefined && all.length > 0) return enforced.length > 0 ? 'invalid' : []
    return [...enforced.filter((p) => !this.#isLater(p)), ...enforced.filter((p) => this.#isLater(p))]
  }

  /** A policy with `anonymous: 'skip'` limits no request without its key: docs/keys-and-proxies.md. */
  #applies(p: number, { client }: Request): boolean {
    return client !== undefined || this.#policy(p).anonymous !== 'skip'
  }

  /** docs/policies.md, Several policies on a request. */
  #isLater(p: number): boolean {
    const { count, enforce, consistency, sharedTurns, ban, allow, deny, anonymous } = this.#policy(p)
    const isPartly = enforce !== undefined && 'percent' in enforce
    return (
      isPartly || [count, consistency, sharedTurns, ban, allow, deny, anonymous].some((field) => field !== undefined)
    )
  }

  /**
   * Counts the decision on a request, and returns what is expected of a verdict of one policy, and what the request holds then: one
   * that is refused holds what policies that only report have charged.
   */
  decided(
    request: Request,
    proceeds: boolean,
    isAllowed: boolean | undefined,
    process = 0,
  ): { held: Held; expected: Expected | undefined } {
    const deciding = this.#deciding(request)
    if (deciding === 'invalid')
      return { held: this.#hold(request, [], process), expected: { allowed: false, reason: 'invalid' } }
    const reporting =
      request.client === undefined
        ? []
        : [...this.#case.policies.keys()].filter((p) => isReported(this.#policy(p)) && this.#applies(p, request))
    // All or none: docs/guarantees.md. The first that refuses counts the refusal.
    const refusing = proceeds
      ? undefined
      : (deciding.find((p) => this.expect(request, p).allowed === false) ??
        deciding.find((p) => this.expect(request, p).allowed === undefined))
    // No page says which of those decided later is the first, and it alone counts a strike.
    const later = deciding.filter((p) => this.#isLater(p) && this.expect(request, p).allowed !== true)
    if (refusing !== undefined && this.#isLater(refusing) && later.length > 1 && later.some((p) => this.#policy(p).ban))
      throw new Undecided()
    const decided = (proceeds ? deciding : refusing === undefined ? [] : [refusing]).map((p) =>
      this.#decide(request, p, proceeds),
    )
    // Charged even where others refuse: docs/policies.md, Several policies on a request.
    const reported = reporting
      .filter((p) => refusing === undefined || 'mode' in (this.#policy(p).enforce ?? {}))
      .map((p) => this.#decide(request, p, this.expect(request, p).allowed ?? known(isAllowed)))
    const charges = [...(proceeds ? decided : []), ...reported].flatMap(({ charges }) => charges)
    return { held: this.#hold(request, charges, process), expected: [...decided, ...reported][0]?.expected }
  }

  #hold(by: Request, charges: readonly Charged[], process: number): Held {
    const until = this.now + (this.#case.keep ?? Number.POSITIVE_INFINITY)
    const held = { charges, by, process, isReleased: false, hasEnded: false, until }
    this.#held.push(held)
    return held
  }

  /** What is expected of a decision of one policy, before it is made. */
  expect(request: Request, p = 0, policy = this.#policy(p)): Expected {
    const { client } = request
    // A value that is both allowed and denied is denied: docs/lists.md, Precedence.
    if (client !== undefined && policy.deny?.includes(client)) return { allowed: false, reason: 'denied' }
    if (client !== undefined && policy.allow?.includes(client)) return { allowed: true }
    const barred = this.#barred(policy, p, request)
    if (barred) return barred
    const needs = this.#needs(policy, p, request)
    const isPossible = needs.every(({ count, need, reserved }) => need <= Math.max(0, count.capacity - reserved))
    const fits = needs.map(({ count, need, reserved }) => {
      const [least, most] = count.room(this.now)
      if (need === 0 || least - reserved >= need) return true
      return most - reserved >= need ? undefined : false
    })
    const allowed = fits.includes(false) ? false : fits.includes(undefined) ? undefined : true
    return {
      allowed,
      ...(allowed === false && { reason: isPossible ? 'limited' : 'impossible' }),
      delayMs: this.#delay(needs),
    }
  }

  /** Counts the decision of one policy. */
  #decide(request: Request, p: number, isAllowed: boolean): { charges: readonly Charged[]; expected: Expected } {
    const policy = this.#policy(p)
    const before = this.expect(request, p)
    const isByLimits = before.delayMs !== undefined
    const isListed = !isByLimits && before.retryAfterMs === undefined
    if (isListed) return { charges: [], expected: before }
    const needs = this.#needs(policy, p, request)
    const refused = needs.map(({ count, unit }) => {
      return { policy, count, unit, units: 0, entry: undefined, isRefused: true, isDone: false }
    })
    if (!isByLimits) return { charges: isReported(policy) ? refused : [], expected: before }
    const isPossible = before.reason !== 'impossible'
    const isCharged = isAllowed || (policy.onDeny === 'charge' && isPossible)
    const charges = isCharged ? needs.map((need) => this.#charge(policy, need, isAllowed)) : []
    const ban = !isAllowed && isPossible && !isReported(policy) ? this.#strike(policy, p, request) : undefined
    // The charge of a refusal is never settled or refunded, also where it is only reported.
    return {
      charges: isAllowed ? charges : isReported(policy) ? refused : [],
      expected: ban ?? { ...before, ...this.#reports(needs, isAllowed, isPossible) },
    }
  }

  /** What a peek reports. `isAllowed`: what it said, where either is right. */
  peek(request: Request, isAllowed: boolean, p = 0): Expected {
    const { allow: _allow, deny: _deny, ...policy } = this.#policy(p)
    // Methods of a limiter of documents know no lists: docs/policies.md, Look at a client.
    const expected = this.expect(request, p, this.#case.way === 'document' ? policy : this.#policy(p))
    if (expected.delayMs === undefined) return expected
    const needs = this.#needs(this.#policy(p), p, request)
    return { ...expected, ...this.#reports(needs, expected.allowed ?? isAllowed, expected.reason !== 'impossible') }
  }

  #reports(needs: readonly Need[], isAllowed: boolean, isPossible: boolean): Pick<Expected, 'limits' | 'retryAfterMs'> {
    const limits = needs.map(({ count, need, reserved }): LimitExpected => {
      const [least, most] = count.room(this.now)
      const fitsEver = need <= Math.max(0, count.capacity - reserved)
      if (count.isLeased && isAllowed)
        return { remaining: [0, count.capacity], retryAfterMs: [0, 0], resetAfterMs: [0, Number.POSITIVE_INFINITY] }
      return {
        remaining: [Math.max(0, least - reserved), Math.max(0, most - reserved)],
        retryAfterMs: isAllowed || need === 0 ? [0, 0] : fitsEver ? count.wait(this.now, need + reserved) : undefined,
        resetAfterMs: count.wait(this.now, count.capacity),
      }
    })
    const waits = limits.flatMap(({ retryAfterMs }) => (retryAfterMs ? [retryAfterMs] : []))
    const most = (i: 0 | 1) => Math.max(0, ...waits.map((range) => range[i]))
    return { limits, retryAfterMs: isPossible ? [most(0), most(1)] : undefined }
  }

  /** Replaces what a request holds of a unit. The steps of a meter are charges of their own: docs/charges.md, Retries. */
  settle(held: Held, unit: string, total: number, isMetered = false): void {
    if (!isMetered && this.#isUnknown(held)) return
    for (const charged of openOf(held, unit)) {
      if (charged.isRefused) continue
      charged.isDone = true
      if (total < charged.units) this.#refund(held, charged, charged.units - total)
      // A limit of 0 refuses everything as it is.
      else if (total > charged.units && charged.count.capacity > 0)
        charged.count.charge(this.now, total - charged.units, true)
    }
  }

  /** `isById`: in any process. The process that was charged remembers what it has settled, even if the id is unknown by then. */
  settleAll(held: Held, units: number | Units, isById: boolean): void {
    const named: Units = typeof units === 'number' ? { requests: units } : units
    for (const [unit, total] of Object.entries(named)) {
      this.settle(held, unit, total as number)
      if (!isById) close(held, unit)
    }
  }

  refund(held: Held, isById: boolean): void {
    const units = new Set(held.charges.map((each) => each.unit))
    for (const unit of units) {
      this.settle(held, unit, 0)
      if (!isById) close(held, unit)
    }
    held.isReleased ||= !this.#isUnknown(held)
  }

  /** The response of a request is sent. Its permits are free. */
  responded(held: Held, status: number): void {
    if (held.hasEnded) return
    this.outcome(held, status)
    this.release(held)
  }

  /** The outcome of a request, once. Without a status it counts: docs/counting-by-outcome.md, Outcomes that count. */
  outcome(held: Held, status: number | undefined): void {
    if (held.hasEnded) return
    held.hasEnded = true
    for (const charged of held.charges) {
      const { count } = charged.policy
      if (charged.isDone || charged.isRefused || !count || status === undefined || OUTCOMES[count.only](status))
        continue
      charged.isDone = true
      this.#refund(held, charged, charged.units)
    }
  }

  release(held: Held): void {
    if (held.isReleased || this.#isUnknown(held)) return
    held.isReleased = true
    this.settle(held, 'concurrent-requests', 0)
  }

  renew(held: Held): void {
    if (this.#isUnknown(held)) return
    if (this.#case.keep !== undefined) held.until = this.now + this.#case.keep
    if (held.isReleased) return
    for (const { count, entry, isDone } of held.charges) {
      if (entry && !isDone && count.limit.algorithm === 'concurrency') count.renew(entry, this.now)
    }
  }

  /** The units after which a stream has to end, but for the steps under way. */
  room(held: Held, unit: string): Range {
    // A request that is only reported is never cut: docs/units.md, Meter a stream.
    const counting = held.charges.filter((charged) => charged.unit === unit && !isReported(charged.policy))
    const bounds = counting.map(({ policy, count, units }): Range => {
      // A ban of one policy refuses under this policy: docs/policies.md, Several policies on a request.
      if (this.#isBarred(policy, held)) return [units, units]
      const reserved = reservedOf(count.limit, held.by.priority)
      const [least, most] = count.room(this.now)
      return [units + Math.max(0, least - reserved), units + Math.max(0, most - reserved)]
    })
    return [Math.min(...bounds.map(([least]) => least)), Math.min(...bounds.map(([, most]) => most))]
  }

  /** The steps of a stream that were charged to policies that had refused the request: no settlement changes them. */
  stepped(held: Held, unit: string, length: number): void {
    for (const charged of openOf(held, unit)) {
      if (!charged.isRefused) continue
      charged.isDone = true
      if (!this.#isBarred(charged.policy, held)) charged.count.fillPartly(this.now, length)
    }
  }

  /** Charges a stream of so many units, as far as each limit has room for those beyond its estimate. */
  end(held: Held, unit: string, length: number): void {
    for (const charged of openOf(held, unit)) {
      charged.isDone = true
      if (length < charged.units) this.#refund(held, charged, charged.units - length)
      else if (!this.#isBarred(charged.policy, held)) {
        const all = held.charges.map(({ count }) => reservedOf(count.limit, held.by.priority))
        const reserved = all.some((units) => units > 0) ? reservedOf(charged.count.limit, held.by.priority) : undefined
        charged.count.fill(this.now, length - charged.units, reserved, charged.policy.onDeny === 'charge')
      }
    }
  }

  /** Forgets what a client has used, in every tier: the limits that count clients. */
  reset(client: string, process = 0): void {
    this.#reset(
      [...this.#counts.values()].filter(({ identity }) => identity === client),
      process,
    )
    this.#case.policies.forEach((policy, p) => this.#ban(policy, p, client)?.reset())
  }

  /** Forgets what all identities of a request have used in its tier. */
  resetAll(request: Request, process = 0): void {
    this.#reset(
      this.#needs(this.#policy(0), 0, request).map(({ count }) => count),
      process,
    )
    if (request.client !== undefined) this.#ban(this.#policy(0), 0, request.client)?.reset()
  }

  block(client: string, ms: number): void {
    // A block from all policies of a document replaces no ban of one of them: docs/bans.md, End a ban.
    if (this.#case.way !== 'document') this.#ban(this.#policy(0), 0, client)?.block()
    this.#blocks.set(client, this.now + ms)
  }

  unblock(client: string): void {
    this.#blocks.delete(client)
    this.#case.policies.forEach((policy, p) => this.#ban(policy, p, client)?.unblock())
  }

  strike(client: string, p = 0): { readonly until: number } | undefined {
    const policy = this.#policy(p)
    if (this.#isBlocked(client)) return undefined
    return this.#ban(policy, p, client)?.strike(this.now, 1)
  }

  /** Earlier ids of these identities are unknown then: docs/charges.md, Ids. */
  #reset(counts: readonly Count[], process: number): void {
    for (const count of counts) count.reset(process)
    if (this.#case.keep === undefined) return
    const identities = counts.map(({ identity }) => identity)
    for (const charged of this.#held.flatMap(({ charges }) => charges))
      charged.isDone ||= !charged.isRefused && identities.includes(charged.count.identity)
  }

  #policy(p: number): PolicyOf {
    return this.#case.policies[p] as PolicyOf
  }

  #isUnknown(held: Held): boolean {
    return this.now >= held.until
  }

  #isBarred(policy: PolicyOf, { by }: Held): boolean {
    return this.#barred(policy, this.#case.policies.indexOf(policy), by) !== undefined
  }

  #isBlocked(client: string): boolean {
    return (this.#blocks.get(client) ?? 0) > this.now
  }

  #ban({ ban }: PolicyOf, p: number, client: string): BanOracle | undefined {
    if (!ban) return undefined
    const id = `${p} ${client}`
    const { after, within: withinMs, for: ladderMs } = ban
    const made = this.#bans.get(id) ?? new BanOracle({ after, withinMs, ladderMs, forgetAfterMs: 30 * 86_400_000 })
    this.#bans.set(id, made)
    return made
  }

  /** The refusal by a block or a ban. */
  #barred(policy: PolicyOf, p: number, { client }: Request): Expected | undefined {
    if (client === undefined) return undefined
    const until = this.#blocks.get(client) ?? 0
    const ban = this.#ban(policy, p, client)?.holds(this.now)
    const latest = Math.max(until, ban?.until ?? 0)
    if (latest <= this.now) return undefined
    const retryAfterMs: Range = [latest - this.now, latest - this.now]
    return { allowed: false, reason: until === latest ? 'blocked' : 'banned', retryAfterMs }
  }

  #strike(policy: PolicyOf, p: number, { client }: Request): Expected | undefined {
    const ban = client === undefined ? undefined : this.#ban(policy, p, client)?.strike(this.now, 1)
    if (!ban) return undefined
    return { allowed: false, reason: 'banned', retryAfterMs: [ban.until - this.now, ban.until - this.now] }
  }

  #needs(policy: PolicyOf, p: number, request: Request): Need[] {
    const { tiers, limits = tiers?.[request.tier] ?? [] } = policy
    const tier = tiers ? request.tier : ''
    return limits.map((limit, l): Need => {
      const { key = 'client' } = limit
      const value = key === 'everyone' ? EVERYONE : request[key]
      const id = [p, tier, l, value].join(' ')
      const count = this.#counts.get(id) ?? new Count(limit, value as string, this.#case.processes)
      this.#counts.set(id, count)
      const unit = unitOf(limit)
      const reserved = reservedOf(limit, request.priority)
      const named = costOf(unit, this.#case.way === 'document' ? costIn(policy, request.cost) : request.cost)
      const cap = limit.estimate === 'cap' ? Math.max(0, count.capacity - reserved) : Number.POSITIVE_INFINITY
      const cost = Math.min(named ?? 0, cap)
      return { count, unit, reserved, cost, need: named === undefined ? 1 : cost }
    })
  }

  #charge(policy: PolicyOf, { count, unit, cost }: Need, isAllowed: boolean): Charged {
    // A refused request is not in flight.
    const units = isAllowed || unit !== 'concurrent-requests' ? cost : 0
    const entry = units > 0 ? count.charge(this.now, units) : undefined
    return { policy, count, unit, units, entry, isRefused: false, isDone: false }
  }

  #refund(held: Held, { count, entry }: Charged, units: number): void {
    if (entry && !this.#isUnknown(held)) count.refund(entry, units, this.now, held.process)
  }

  /** A `leakyBucket` with a queue gives each request the time at which what is before it has left. */
  #delay(needs: readonly Need[]): Range {
    const waits = needs
      .filter(({ count: { limit } }) => limit.queue)
      .map(({ count }) => count.wait(this.now, count.capacity))
    return [Math.max(0, ...waits.map(([least]) => least)), Math.max(0, ...waits.map(([, most]) => most))]
  }
}

function known(isAllowed: boolean | undefined): boolean {
  if (isAllowed === undefined) throw new Undecided()
  return isAllowed
}

function close(held: Held, unit: string): void {
  for (const charged of openOf(held, unit)) charged.isDone ||= !charged.isRefused
}

/** The charges of a unit that are not settled yet. */
function openOf({ charges }: Held, unit: string): readonly Charged[] {
  return charges.filter((charged) => charged.unit === unit && !charged.isDone)
}

/** Whether it refuses nothing. */
function isReported({ enforce }: PolicyOf): boolean {
  return enforce !== undefined && ('mode' in enforce || enforce.percent === 0)
}

const OUTCOMES = {
  success: (status: number) => status < 400,
  failure: (status: number) => status >= 400 && status < 500 && status !== 429,
}

/** The units of a limit that are kept for higher priorities. */
function reservedOf({ reserve = {} }: LimitOf, priority: number): number {
  return Object.entries(reserve).reduce((sum, [from, units]) => (priority < Number(from) ? sum + units : sum), 0)
}

/** The units that a request names; undefined for a unit that needs room, and takes nothing. */
function costOf(unit: string, cost: number | Units): number | undefined {
  if (typeof cost === 'number') {
    if (unit === 'requests') return cost
    return unit === 'concurrent-requests' ? Math.min(1, cost) : undefined
  }
  return cost[unit] ?? (unit === 'requests' || unit === 'concurrent-requests' ? 1 : undefined)
}
