import { BanOracle } from '../../support/oracle/bans.js'
import { type Case, costIn, type LimitOf, limitsOf, type PolicyOf, type Request, type Units, unitOf } from './case.js'
import { Count, type Entry, type Range, Undecided } from './count.js'
import type { Expected, LimitExpected } from './expected.js'
import { Outages, REFUSED_IN_OUTAGE } from './outages.js'
import { RelaxedCount } from './relaxed-count.js'
import { areAlike, Repeats } from './repeats.js'

/**
 * What a client may get, by docs/guarantees.md and the pages of the features: the least and the most. It shares no code with the
 * packages. Where least and most differ, a comment names the page.
 */

/** A charge of one limit. */
interface Charged {
  readonly policy: PolicyOf
  readonly count: Count
  readonly unit: string
  readonly units: number
  /** Undefined if nothing was charged. */
  readonly entry: Entry | undefined
  /** Whether the policy has refused the request, which it only reports. Only a meter charges then: docs/settle.md, Meter a stream. */
  readonly isRefused: boolean
  /** Whether it is settled or refunded. */
  isDone: boolean
  /** Whether it may be changed by its id alone: a change by the verdict has failed. */
  isClosed: boolean
}

/** An admitted request, with what it holds. */
export interface Held {
  readonly charges: readonly Charged[]
  readonly by: Request
  readonly process: number
  /** Whether the process has charged it by its own counts, in an outage. */
  readonly isLocal: boolean
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
  /** Whether the whole limit can hold it. In an outage, a share of it may not. */
  readonly isPossible: boolean
}

const EVERYONE = 'everyone'

export class Model {
  now: number
  /** The process of the present event. */
  process = 0
  readonly outages: Outages
  readonly #hasOutages: boolean
  readonly #repeats: Repeats
  readonly #case: Case
  readonly #counts = new Map<string, Count>()
  readonly #bans = new Map<string, BanOracle>()
  readonly #blocks = new Map<string, { readonly until: number; readonly at: number; readonly by: number }>()
  readonly #unblockedAt = new Map<string, number>()
  /** Clients that were unblocked and then banned within a ms. */
  readonly #unsureBans = new Set<string>()
  readonly #held: Held[] = []
  /** The processes that have barred clients since the last exchange. */
  readonly #barring = new Map<string, number>()

  constructor(of: Case, now: number) {
    this.#case = of
    this.now = now
    this.outages = new Outages(of)
    this.#repeats = new Repeats(of)
    this.#hasOutages = of.events.some((event) => event.do === 'outage')
  }

  get #isAway(): boolean {
    return this.outages.isAway(this.process)
  }

  /** Whether a request may proceed. Undefined if either is right. */
  mayProceed(request: Request): boolean | undefined {
    const all = this.#deciding(request)
    if (all === 'invalid') return false
    const allowed = all.map((p) => {
      const exact = this.expect(request, p).allowed
      return exact && this.#repeated(request, p).makesRoom ? undefined : exact
    })
    return allowed.includes(false) ? false : allowed.includes(undefined) ? undefined : true
  }

  /** The policies that can refuse a request, in the order in which they are decided: those decided later come last. */
  #deciding(request: Request): readonly number[] | 'invalid' {
    const all = [...this.#case.policies.keys()].filter((p) => this.#applies(p, request))
    const enforced = all.filter((p) => !isReported(this.#policy(p)))
    if (request.client === undefined && all.length > 0) return enforced.length > 0 ? 'invalid' : []
    return [...enforced.filter((p) => !this.#isLater(p)), ...enforced.filter((p) => this.#isLater(p))]
  }

  /** A policy with `anonymous: 'skip'` limits no request without its key: docs/keys.md. */
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
  ): { held: Held; expected: Expected | undefined } {
    const deciding = this.#deciding(request)
    if (deciding === 'invalid')
      return { held: this.#hold(request, []), expected: { allowed: false, reason: 'invalid' } }
    const reporting =
      request.client === undefined
        ? []
        : [...this.#case.policies.keys()].filter((p) => isReported(this.#policy(p)) && this.#applies(p, request))
    // All or none: docs/guarantees.md. The first that refuses counts the refusal.
    const refusing = proceeds
      ? undefined
      : (deciding.find((p) => this.expect(request, p).allowed === false) ??
        deciding.find((p) => this.expect(request, p).allowed === undefined || this.#repeated(request, p).makesRoom))
    // No page says which of those decided later is the first, and it alone counts a strike.
    const later = deciding.filter((p) => this.#isLater(p) && this.expect(request, p).allowed !== true)
    if (refusing !== undefined && this.#isLater(refusing) && later.length > 1 && later.some((p) => this.#policy(p).ban))
      throw new Undecided()
    const decided = (proceeds ? deciding : refusing === undefined ? [] : [refusing]).map((p) =>
      this.#decide(request, p, proceeds),
    )
    if (refusing !== undefined) {
      for (const p of [...deciding, ...reporting]) if (p !== refusing) this.#chargeForMoment(request, p)
    }
    // Charged even where others refuse: docs/policies.md, Several policies on a request.
    const reported = reporting
      .filter((p) => refusing === undefined || 'mode' in (this.#policy(p).enforce ?? {}))
      .map((p) => {
        const exact = this.#repeated(request, p).makesRoom ? undefined : this.expect(request, p).allowed
        return this.#decide(request, p, exact ?? known(isAllowed))
      })
    const charges = [...(proceeds ? decided : []), ...reported].flatMap(({ charges }) => charges)
    // The reply of the store may tell of the limits of all policies.
    for (const p of this.#case.policies.keys())
      if (this.#applies(p, request)) this.#note(this.#countsOf(p, request), false)
    return { held: this.#hold(request, charges), expected: [...decided, ...reported][0]?.expected }
  }

  #chargeForMoment(request: Request, p: number): void {
    for (const { count, cost } of this.#isAway ? [] : this.#needs(this.#policy(p), p, request))
      if (count instanceof RelaxedCount && cost > 0) count.chargeForMoment(this.now, cost)
  }

  #hold(by: Request, charges: readonly Charged[]): Held {
    const until = this.now + (this.#case.keep ?? Number.POSITIVE_INFINITY)
    const { process } = this
    const held = { charges, by, process, isLocal: this.#isAway, isReleased: false, hasEnded: false, until }
    this.#held.push(held)
    return held
  }

  /** What is expected of a decision of one policy, before it is made. */
  expect(request: Request, p = 0, policy = this.#policy(p)): Expected {
    const { client } = request
    // A value that is both allowed and denied is denied: docs/blocks-and-lists.md, Precedence.
    if (client !== undefined && policy.deny?.includes(client)) return { allowed: false, reason: 'denied' }
    if (client !== undefined && policy.allow?.includes(client)) return { allowed: true }
    const barred = this.#barred(policy, p, request)
    if (barred) return barred
    const undecided = this.#isAway ? this.outages.withoutCounts : undefined
    if (undecided) return undecided
    const needs = this.#needs(policy, p, request)
    const isPossible = needs.every(({ isPossible }) => isPossible)
    // The whole limit can hold it: docs/when-redis-fails.md, Local decisions.
    if (isPossible && !needs.every(fitsEver)) return REFUSED_IN_OUTAGE
    const local = this.#isAway && client !== undefined ? this.outages.ban(this.process, p, client) : undefined
    const ban = local?.holds(this.now)
    if (ban) return this.#barredUntil(ban.until, 'banned')
    const fits = needs.map(({ count, need, reserved }) => {
      const [least, most] = count.room(this.now)
      if (need === 0 || least - reserved >= need) return true
      return most - reserved >= need ? undefined : false
    })
    const allowed = !isPossible || fits.includes(false) ? false : fits.includes(undefined) ? undefined : true
    return {
      allowed,
      ...(allowed === false && { reason: isPossible ? 'limited' : 'impossible' }),
      ...(this.#isAway && { kind: 'unavailable' as const }),
      delayMs: this.#delay(needs),
    }
  }

  /** What a process may repeat of a refusal. */
  #repeated(request: Request, p: number): { makesRoom: boolean; changes: boolean } {
    const policy = this.#policy(p)
    if (this.#isAway) return { makesRoom: false, changes: false }
    return this.#repeats.find(this.process, policy, request, this.#costsOf(request, p), this.now)
  }

  #costsOf(request: Request, p: number): string {
    return this.#needs(this.#policy(p), p, request)
      .map(({ cost, need, reserved }) => `${cost} ${need} ${reserved}`)
      .join()
  }

  /** Counts the decision of one policy. */
  #decide(request: Request, p: number, isAllowed: boolean): { charges: readonly Charged[]; expected: Expected } {
    const exact = this.expect(request, p)
    const isListed = exact.delayMs === undefined && exact.retryAfterMs === undefined
    if (isAllowed || isListed || this.#isAway) return this.#decideExactly(request, p, isAllowed)
    const { makesRoom, changes } = this.#repeated(request, p)
    const policy = this.#policy(p)
    if ((makesRoom || changes) && policy.ban && exact.delayMs !== undefined && exact.allowed === false)
      throw new Undecided()
    const isRepeated = makesRoom && exact.allowed !== false
    if (!isRepeated && exact.delayMs !== undefined)
      this.#repeats.note(this.process, policy, request, this.#costsOf(request, p), this.now)
    if (!isRepeated && !changes) return this.#decideExactly(request, p, isAllowed)
    const refused = this.#needs(policy, p, request).map(({ count, unit }) => refusedBy(policy, count, unit))
    return { charges: isReported(policy) ? refused : [], expected: { allowed: false, isRepeated: true } }
  }

  #decideExactly(request: Request, p: number, isAllowed: boolean): { charges: readonly Charged[]; expected: Expected } {
    const policy = this.#policy(p)
    const before = this.expect(request, p)
    const isByLimits = before.delayMs !== undefined
    const isListed = !isByLimits && before.retryAfterMs === undefined
    if (isListed) return { charges: [], expected: before }
    const needs = this.#needs(policy, p, request)
    const refused = needs.map(({ count, unit }) => refusedBy(policy, count, unit))
    if (!isByLimits) return { charges: isReported(policy) ? refused : [], expected: before }
    const isPossible = before.reason !== 'impossible'
    const isCharged = isAllowed || (policy.onDeny === 'charge' && isPossible)
    const charges = isCharged ? needs.map((need) => this.#charge(policy, need, isAllowed)) : []
    const ban = !isAllowed && isPossible && !isReported(policy) ? this.#strike(policy, p, request) : undefined
    // A reply about a ban says nothing of the limits.
    this.#note(
      needs.map(({ count }) => count),
      ban === undefined,
    )
    // The charge of a refusal is never settled or refunded, also where it is only reported.
    return {
      charges: isAllowed ? charges : isReported(policy) ? refused : [],
      expected: ban ?? { ...before, ...this.#reports(needs, isAllowed, isPossible) },
    }
  }

  /** What a peek reports. `isAllowed`: what it said, where either is right. */
  peek(request: Request, isAllowed: boolean, p = 0): Expected {
    const { allow: _allow, deny: _deny, ...policy } = this.#policy(p)
    // Methods of a limiter of documents know no lists: docs/policy-overrides.md, Look at a client.
    const expected = this.expect(request, p, this.#case.way === 'document' ? policy : this.#policy(p))
    if (expected.delayMs === undefined) return expected
    const needs = this.#needs(this.#policy(p), p, request)
    this.#note(needs.map(({ count }) => count))
    return { ...expected, ...this.#reports(needs, expected.allowed ?? isAllowed, expected.reason !== 'impossible') }
  }

  #reports(needs: readonly Need[], isAllowed: boolean, isPossible: boolean): Pick<Expected, 'limits' | 'retryAfterMs'> {
    const limits = needs.map((one): LimitExpected => {
      const { count, need, reserved } = one
      const [least, most] = count.room(this.now)
      if (count.isLeased && isAllowed)
        return { remaining: [0, count.capacity], retryAfterMs: [0, 0], resetAfterMs: [0, Number.POSITIVE_INFINITY] }
      return {
        remaining: [Math.max(0, least - reserved), Math.max(0, most - reserved)],
        retryAfterMs:
          isAllowed || need === 0 ? [0, 0] : fitsEver(one) ? count.wait(this.now, need + reserved) : undefined,
        resetAfterMs: count.wait(this.now, count.capacity),
      }
    })
    const waits = limits.flatMap(({ retryAfterMs }) => (retryAfterMs ? [retryAfterMs] : []))
    const most = (i: 0 | 1) => Math.max(0, ...waits.map((range) => range[i]))
    return { limits, retryAfterMs: isPossible ? [most(0), most(1)] : undefined }
  }

  /** Replaces what a request holds of a unit. The steps of a meter are charges of their own: docs/charges.md, Retries. */
  settle(held: Held, unit: string, total: number, { isById = false, isMetered = false } = {}): void {
    if (!isMetered && this.#isUnknown(held)) return
    for (const charged of openOf(held, unit, isById)) {
      if (charged.isRefused) continue
      // Without the store, nothing changes: docs/when-redis-fails.md, Other operations.
      if (!this.#reaches(held)) {
        this.#returnToLease(held, charged, charged.units - total)
        charged.isClosed ||= !isById
        continue
      }
      charged.isDone = true
      if (total < charged.units) this.#refund(held, charged, charged.units - total)
      // A limit of 0 refuses everything as it is.
      else if (total > charged.units && charged.count.capacity > 0) this.#debit(held, charged, total - charged.units)
    }
  }

  #debit(held: Held, charged: Charged, units: number): void {
    charged.count.charge(this.now, units, true)
    this.#didOwn(held)
    this.#noteChange(held, charged)
  }

  #returnToLease({ isLocal, process }: Held, { count, entry }: Charged, units: number): void {
    if (!entry || units <= 0 || isLocal || process !== this.process) return
    count.returnToLease(entry, units, this.now)
    this.outages.note(process, count, false, this.now)
  }

  /** Whether a process can change what a request holds. It reaches the counts of its own in an outage, too. */
  #reaches({ isLocal, process }: Held): boolean {
    return isLocal ? this.process === process : !this.#isAway
  }

  /** `isById`: in any process. The process that was charged remembers what it has settled, even if the id is unknown by then. */
  settleAll(held: Held, units: number | Units, isById: boolean): void {
    const named: Units = typeof units === 'number' ? { requests: units } : units
    for (const [unit, total] of Object.entries(named)) {
      this.settle(held, unit, total as number, { isById })
      if (!isById) close(held, unit)
    }
  }

  refund(held: Held, isById: boolean): void {
    const units = new Set(held.charges.map((each) => each.unit))
    for (const unit of units) {
      this.settle(held, unit, 0, { isById })
      if (!isById) close(held, unit)
    }
    held.isReleased ||= this.#reaches(held) && !this.#isUnknown(held)
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
      if (
        charged.isDone ||
        charged.isClosed ||
        charged.isRefused ||
        !count ||
        status === undefined ||
        OUTCOMES[count.only](status)
      )
        continue
      if (this.#reaches(held)) {
        charged.isDone = true
        this.#refund(held, charged, charged.units)
      } else charged.isClosed = true
    }
  }

  release(held: Held, isById = false): void {
    if (held.isReleased || this.#isUnknown(held) || !this.#reaches(held)) return
    held.isReleased = true
    this.settle(held, 'concurrent-requests', 0, { isById })
  }

  renew(held: Held, isById = false): void {
    if (this.#isUnknown(held) || !this.#reaches(held)) return
    if (this.#case.keep !== undefined) held.until = this.now + this.#case.keep
    if (held.isReleased) return
    for (const { count, entry, isDone, isClosed } of held.charges) {
      if (entry && !isDone && (isById || !isClosed) && count.limit.algorithm === 'concurrency')
        count.renew(entry, this.now)
    }
  }

  /** The units after which a stream has to end, but for the steps under way. */
  room(held: Held, unit: string): Range {
    // A request that is only reported is never cut: docs/settle.md, Meter a stream.
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
        this.#noteChange(held, charged)
      }
    }
  }

  /** Forgets what a client has used, in every tier: the limits that count clients. */
  reset(client: string): void {
    this.#didTo(client)
    this.#reset([...this.#counts.values()].filter(({ identity }) => identity === client))
    this.#case.policies.forEach((_, p) => this.#resetStrikes(p, client))
  }

  /** Forgets what all identities of a request have used in its tier. */
  resetAll(request: Request): void {
    this.#repeats.did(this.process, true)
    this.#reset(this.#countsOf(0, request))
    if (request.client !== undefined) this.#resetStrikes(0, request.client)
  }

  #resetStrikes(p: number, client: string): void {
    if (!this.#isAway) this.#ban(this.#policy(p), p, client)?.reset()
    this.outages.ban(this.process, p, client)?.reset()
  }

  /** All processes have exchanged their relaxed counts. */
  exchange(): void {
    for (const count of this.#counts.values()) if (count instanceof RelaxedCount) count.exchange()
    this.#barring.clear()
  }

  block(client: string, ms: number): void {
    this.#barring.set(client, this.process)
    this.#didTo(client)
    // A block from all policies of a document replaces no ban of one of them: docs/bans.md, End a ban.
    if (this.#case.way !== 'document') this.#ban(this.#policy(0), 0, client)?.block()
    this.#blocks.set(client, { until: this.now + ms, at: this.now, by: this.process })
  }

  unblock(client: string): void {
    this.#didTo(client)
    this.#blocks.delete(client)
    this.#unblockedAt.set(client, this.now)
    this.#unsureBans.delete(client)
    this.#case.policies.forEach((policy, p) => {
      this.#ban(policy, p, client)?.unblock()
      this.outages.ban(this.process, p, client)?.unblock()
    })
  }

  strike(client: string, p = 0): { readonly until: number } | undefined {
    const policy = this.#policy(p)
    if (this.#isAway) return this.outages.ban(this.process, p, client)?.strike(this.now, 1)
    if (this.#isBlocked(client)) return undefined
    this.#barring.set(client, this.process)
    this.#repeats.did(this.process, false)
    this.#noteTie(client)
    return this.#ban(policy, p, client)?.strike(this.now, 1)
  }

  /** A process may not know a ban from the ms of an `unblock`: docs/bans.md, End a ban. */
  #noteTie(client: string): void {
    if (this.#unblockedAt.get(client) === this.now) this.#unsureBans.add(client)
  }

  /** Earlier ids of these identities are unknown then: docs/charges.md, Ids. Without the store, a process forgets its own counts. */
  #reset(counts: readonly Count[]): void {
    this.outages.reset(this.process, counts)
    for (const count of counts) {
      if (this.#isAway) count.failReset()
      else count.reset(this.process)
    }
    if (this.#case.keep === undefined) return
    const identities = counts.map(({ identity }) => identity)
    for (const held of this.#held.filter((each) => this.#reaches(each))) {
      for (const charged of held.charges)
        charged.isDone ||= !charged.isRefused && identities.includes(charged.count.identity)
    }
  }

  /** The reply to a change may tell of all that a request holds. */
  #noteChange({ charges, isLocal }: Held, { count }: Charged): void {
    if (isLocal) return
    this.#note(
      charges.map((each) => each.count),
      false,
    )
    this.#note([count])
  }

  /** The process has had a reply about these counts. `isSure`: for certain. */
  #note(counts: readonly Count[], isSure = true): void {
    if (!this.#hasOutages || this.#isAway || !this.outages.isLocal) return
    for (const count of counts) this.outages.note(this.process, count, isSure, this.now)
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
    return (this.#blocks.get(client)?.until ?? 0) > this.now
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
    const { until, at, by } = this.#blocks.get(client) ?? { until: 0, at: 0, by: 0 }
    const lease = this.#case.processes === undefined ? undefined : limitsOf(policy)[0]?.lease
    // A process may spend the units of its lease: docs/fewer-round-trips.md, Costs.
    if (lease && until > this.now && by !== this.process && this.now < at + lease.ttl) throw new Undecided()
    // Until the next exchange: docs/fewer-round-trips.md, How a process decides.
    const isUnseen = (this.#barring.get(client) ?? this.process) !== this.process
    if (isUnseen && policy.consistency && (this.#case.processes ?? 0) > 1) throw new Undecided()
    const ban = this.#ban(policy, p, client)?.holds(this.now)
    const latest = Math.max(until, ban?.until ?? 0)
    if (this.#repeats.mayRepeatBlock(this.process, client, latest, this.now)) throw new Undecided()
    if (latest <= this.now) return undefined
    this.#repeats.noteBlock(this.process, client, latest, this.now)
    // Of two, a process may know one: blocks of other processes from every policy take effect within a second. docs/guarantees.md.
    const isUnsure = (this.#case.processes ?? 0) > 1 || this.#unsureBans.has(client)
    if (ban && until > this.now && (isUnsure || until === ban.until)) {
      const first = Math.min(until, ban.until)
      return { allowed: false, reason: undefined, retryAfterMs: [first - this.now, latest - this.now] }
    }
    return this.#barredUntil(latest, until === latest ? 'blocked' : 'banned')
  }

  #barredUntil(ms: number, reason: 'blocked' | 'banned' | undefined): Expected {
    return { allowed: false, reason, retryAfterMs: [ms - this.now, ms - this.now] }
  }

  #strike(policy: PolicyOf, p: number, { client }: Request): Expected | undefined {
    if (client === undefined) return undefined
    // Only this process knows it: docs/when-redis-fails.md, Other operations.
    const bans = this.#isAway ? this.outages.ban(this.process, p, client) : this.#ban(policy, p, client)
    const ban = bans?.strike(this.now, 1)
    this.#noteTie(client)
    if (bans) this.#barring.set(client, this.process)
    if (ban) this.#repeats.noteBlock(this.process, client, ban.until, this.now)
    if (!ban) return undefined
    return { allowed: false, reason: 'banned', retryAfterMs: [ban.until - this.now, ban.until - this.now] }
  }

  #limits({ tiers, limits }: PolicyOf, { tier }: Request): readonly LimitOf[] {
    return limits ?? tiers?.[tier] ?? []
  }

  /** What the store counts of a request, by each limit. */
  #countsOf(p: number, request: Request): Count[] {
    const policy = this.#policy(p)
    const tier = policy.tiers ? request.tier : ''
    return this.#limits(policy, request).map((limit, l) => {
      const { key = 'client' } = limit
      const value = key === 'everyone' ? EVERYONE : (request[key] as string)
      const id = [p, tier, l, value].join(' ')
      const count = this.#counts.get(id) ?? this.#makeCount(id, policy, limit, value)
      this.#counts.set(id, count)
      return count
    })
  }

  #makeCount(id: string, { consistency }: PolicyOf, limit: LimitOf, value: string): Count {
    const { processes = 0 } = this.#case
    if (consistency && processes > 1) return new RelaxedCount(id, limit, value, () => this.process)
    return new Count(id, limit, value, processes)
  }

  #needs(policy: PolicyOf, p: number, request: Request): Need[] {
    const whole = this.#countsOf(p, request)
    const counts = this.#isAway ? this.outages.counts(this.process, whole) : whole
    return counts.map((count, i): Need => {
      const { limit } = count
      const unit = unitOf(limit)
      const ofWhole = reservedOf(limit, request.priority)
      const reserved = count === whole[i] ? ofWhole : this.outages.reserved(ofWhole, count)
      const named = costOf(unit, this.#case.way === 'document' ? costIn(policy, request.cost) : request.cost)
      const upTo = (capacity: number, units: number) =>
        limit.estimate === 'cap' ? Math.max(0, capacity - units) : Number.POSITIVE_INFINITY
      const wholeCapacity = (whole[i] as Count).capacity
      const cost = Math.min(named ?? 0, upTo(wholeCapacity, ofWhole), upTo(count.capacity, reserved))
      const need = named === undefined ? 1 : cost
      return { count, unit, reserved, cost, need, isPossible: need <= Math.max(0, wholeCapacity - ofWhole) }
    })
  }

  /** A process has changed the charge of a request. */
  #didOwn({ by, charges }: Held): void {
    this.#repeats.did(this.process, true)
    this.#repeats.drop(this.process, (refusal) => {
      return areAlike(refusal.policy, refusal.by, by) && charges.some(({ policy }) => policy === refusal.policy)
    })
  }

  /** A process has changed what a client may do. */
  #didTo(client: string): void {
    this.#repeats.did(this.process, true)
    this.#repeats.drop(this.process, (refusal) => refusal.by.client === client)
    this.#repeats.dropBlock(this.process, client)
  }

  #charge(policy: PolicyOf, { count, unit, cost }: Need, isAllowed: boolean): Charged {
    // A refused request is not in flight.
    this.#repeats.did(this.process, false)
    const units = isAllowed || unit !== 'concurrent-requests' ? cost : 0
    const entry = units > 0 ? count.charge(this.now, units) : undefined
    return { policy, count, unit, units, entry, isRefused: false, isDone: false, isClosed: false }
  }

  #refund(held: Held, charged: Charged, units: number): void {
    const { count, entry } = charged
    if (!entry || this.#isUnknown(held)) return
    count.refund(entry, units, this.now, held.process)
    this.#didOwn(held)
    if (units > 0) this.#noteChange(held, charged)
  }

  /** A `leakyBucket` with a queue gives each request the time at which what is before it has left. */
  #delay(needs: readonly Need[]): Range {
    const waits = needs
      .filter(({ count: { limit } }) => limit.queue)
      .map(({ count }) => count.wait(this.now, count.capacity))
    return [Math.max(0, ...waits.map(([least]) => least)), Math.max(0, ...waits.map(([, most]) => most))]
  }
}

function refusedBy(policy: PolicyOf, count: Count, unit: string): Charged {
  return { policy, count, unit, units: 0, entry: undefined, isRefused: true, isDone: false, isClosed: false }
}

function fitsEver({ count, need, reserved }: Need): boolean {
  return need <= Math.max(0, count.capacity - reserved)
}

function known(isAllowed: boolean | undefined): boolean {
  if (isAllowed === undefined) throw new Undecided()
  return isAllowed
}

function close(held: Held, unit: string): void {
  for (const charged of openOf(held, unit)) charged.isDone ||= !charged.isRefused
}

/** The charges of a unit that are not settled yet. */
function openOf({ charges }: Held, unit: string, isById = false): readonly Charged[] {
  return charges.filter((charged) => charged.unit === unit && !charged.isDone && (isById || !charged.isClosed))
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
