import type { Verdict } from '@sluice/core'
import { decisionIn, type ReadablePlan } from '@sluice/core/internal'
import type { Policies } from '@sluice/policies'
import type { RecordContext } from '../replay/record-context.js'
import { Accounts, type OfPolicy, type PolicyAccount, type Subject } from './accounts.js'
import type { Bounds } from './bounds.js'
import { ClientTable, ENFORCED, GOOD, REFUSED } from './client-table.js'
import type { Curves } from './curves.js'
import type { DecisionCount } from './redis-cost.js'
import type { Splits } from './splits.js'
import { TimelineCounts } from './timeline.js'

/** What one plan counts. */
interface OfPlan {
  readonly policies: readonly (OfPolicy & { readonly bounds: Bounds | undefined })[]
  readonly decisions: DecisionCount
}

/** Counts what happens to the requests of a log by one document. */
export class Figures {
  readonly accounts: Accounts
  /** The addresses of clients, and everything counted by address. */
  readonly addresses: ClientTable
  readonly tables = new Map<string, ClientTable>()
  readonly timeline = new TimelineCounts()
  /** Undefined where nobody asks for them. */
  splits: Splits | undefined
  total = 0
  refused = 0
  /** Requests that a policy refuses, also one that only reports. */
  wouldBeRefused = 0
  clientsSeen = 0
  banned = 0
  delayed = 0
  /** Requests that have no key, or a wrong one, and would get 400. */
  invalid = 0
  clientsRefused = 0
  /** Refusals by the row of the address. Undefined where documents are not compared. */
  refusals: Map<number, number> | undefined
  goodSeen = 0
  readonly #byPlan = new WeakMap<object, OfPlan>()
  readonly #decisions = new Map<string, DecisionCount>()
  /** Undefined if neither curves nor headroom are wanted. */
  curves: Curves | undefined
  /** Of policies whose numbers have bounds where the clock is coarse. */
  readonly bounds = new Map<PolicyAccount, Bounds>()
  readonly #rows: number[] = []
  #lastPlan: object | undefined
  #lastDecided: RecordContext | undefined
  #lastOf: OfPlan | undefined
  /** The client of the last request, and its row. */
  #address = ''
  #row = 0

  constructor(policies: Policies) {
    this.accounts = new Accounts(policies)
    this.addresses = this.tableOf('ip')
  }

  tableOf(kind: string): ClientTable {
    let table = this.tables.get(kind)
    if (!table) {
      table = new ClientTable(this.accounts.columnCount(kind))
      this.tables.set(kind, table)
    }
    return table
  }

  arrived({ address, isGood }: RecordContext): void {
    this.total++
    this.#address = address
    this.#row = this.addresses.rowOf(address)
    if (this.addresses.countRequest(this.#row)) this.clientsSeen++
    if (isGood && this.addresses.mark(this.#row, GOOD)) this.goodSeen++
  }

  /**
   * Policies that are decided together have decided. `ms`: for how long they had the request wait. `proceeds`: whether it does,
   * as it may in spite of a refusal.
   */
  decided(context: RecordContext, verdict: Verdict, now: number, ms: number, proceeds: boolean): void {
    const decision = decisionIn(verdict)
    const { plan, identities } = decision.request
    const { ones } = plan as ReadablePlan
    const isRefused = !verdict.allowed
    const { policies, decisions } = this.#ofPlan(plan as ReadablePlan)
    const rows = this.#rows
    const isFirst = this.#isFirst(policies, context)
    decisions.decisions++
    for (const of of policies) {
      const { policy, subjects } = of
      policy.total++
      if (ms > 0 && verdict.allowed) policy.waited(ms)
      const isRefusing = isRefused && this.#countRefusal(of, verdict, proceeds, context)
      if (isRefusing) context.isRefused = true
      for (let i = 0; i < subjects.length; i++) {
        const subject = subjects[i] as Subject
        const { identity, start, table, column } = subject
        const value = valueIn(identities[identity] as string, start)
        const row = table === this.addresses && value === this.#address ? this.#row : table.rowOf(value)
        if (table.count(row, column)) policy.clientsSeen++
        rows[i] = row
        if (context.isGood) table.mark(row, GOOD)
        if (isRefusing) this.#noteRefused(context, policy, subject, row, verdict, now)
      }
      this.curves?.decided(of, rows, verdict, now, context)
      of.bounds?.decided(isFirst && decision.request.costs === ones, rows[0] as number, verdict, context)
    }
  }

  /** The decisions that stores are asked for. */
  get decisions(): readonly DecisionCount[] {
    return [...this.#decisions.values()]
  }

  /** Whether no policy that refuses has decided on a request before. Those in report mode get each request, whatever others do. */
  #isFirst(policies: OfPlan['policies'], context: RecordContext): boolean {
    if (policies.every(({ policy }) => policy.isReported)) return true
    const isFirst = this.#lastDecided !== context
    // What passes several policies one after the other is refused by the first of them.
    if (!isFirst) for (const [policy, bounds] of this.bounds) if (!policy.isReported) bounds.break()
    this.#lastDecided = context
    return isFirst
  }

  /** Counts a refusal of a plan's policies for one of them, and returns whether it is one that refuses. */
  #countRefusal({ policy, limits }: OfPolicy, verdict: Verdict, proceeds: boolean, context: RecordContext): boolean {
    if (verdict.reason === 'banned' || verdict.reason === 'blocked') {
      policy.banned++
      return !verdict.reported || policy.isReported
    }
    if (verdict.reason === 'denied') {
      policy.refused++
      return !verdict.reported || policy.isReported
    }
    const reports = verdict.limits
    let isRefusing = false
    for (const { at, account } of limits) {
      if (reports[at]?.allowed !== false) continue
      isRefusing = true
      if (account) account.refused++
    }
    if (!isRefusing) return false
    // Slowed down or degraded; or only reported for this client, as by `enforce: percent`.
    if (proceeds && !policy.isReported) {
      context.slowedBy ??= []
      context.slowedBy.push(policy)
      return false
    }
    policy.refused++
    return true
  }

  #noteRefused(
    context: RecordContext,
    policy: PolicyAccount,
    { table, column }: Subject,
    row: number,
    { reported }: Verdict,
    now: number,
  ): void {
    if (table.countRefusal(row, column, now, context)) policy.clientsRefused++
    if (!reported) table.mark(row, ENFORCED)
  }

  /** The request is admitted or refused for good. */
  concluded(context: RecordContext, isAdmitted: boolean, verdict: Verdict | undefined): void {
    this.timeline.count(context.arrivedAt, !isAdmitted)
    if (!isAdmitted) context.isRefused = true
    if (context.isRefused) this.wouldBeRefused++
    this.splits?.count(context)
    if (isAdmitted) {
      if (context.waitedMs > 0) this.delayed++
      return
    }
    this.refused++
    if (!verdict) this.invalid++
    else if (verdict.reason === 'banned' || verdict.reason === 'blocked') this.banned++
    const { address } = context
    const row = address === this.#address ? this.#row : this.addresses.rowOf(address)
    if (this.addresses.mark(row, REFUSED)) this.clientsRefused++
    this.refusals?.set(row, (this.refusals.get(row) ?? 0) + 1)
  }

  /** A ban has begun. `scope`: the policy that bans, or every policy. */
  banBegan(scope: string | undefined, ms: number): void {
    const { byName } = this.accounts
    const policy = byName.get(scope ?? '') ?? [...byName.values()].find(({ hasBans }) => hasBans)
    policy?.banBegan(ms)
  }

  #ofPlan(plan: ReadablePlan): OfPlan {
    if (plan === this.#lastPlan) return this.#lastOf as OfPlan
    let of = this.#byPlan.get(plan)
    if (!of) {
      of = this.#make(plan)
      this.#byPlan.set(plan, of)
    }
    this.#lastPlan = plan
    this.#lastOf = of
    return of
  }

  #make({ definitions, cells, cellOf, starts }: ReadablePlan): OfPlan {
    const all = new Map<PolicyAccount, OfPolicy & { limits: OfPolicy['limits'][number][]; subjects: Subject[] }>()
    for (const [at, limit] of definitions.entries()) {
      const policy = this.accounts.policyOf(limit)
      if (!policy) continue
      let of = all.get(policy)
      if (!of) {
        of = { policy, limits: [], subjects: [] }
        all.set(policy, of)
      }
      const identity = cells[cellOf[at] as number]?.identity as number
      const known = of.subjects.findIndex((subject) => subject.identity === identity)
      const subject = known < 0 ? of.subjects.length : known
      of.limits.push({ at, account: this.accounts.limitOf(limit), subject })
      if (known >= 0) continue
      const start = starts[identity] as string
      const kind = start.slice(0, -1)
      of.subjects.push({ identity, start, table: this.tableOf(kind), column: this.accounts.columnOf(kind, policy) })
    }
    const algorithms = definitions.map(({ algorithm }) => algorithm)
    const name = algorithms.join()
    const decisions = this.#decisions.get(name) ?? { algorithms, decisions: 0 }
    this.#decisions.set(name, decisions)
    const policies = [...all.values()].map((of) => {
      const bounds = this.bounds.get(of.policy)
      // Requests of one client have to be alike.
      if (all.size > 1 || of.subjects.length > 1) bounds?.break()
      return { ...of, bounds }
    })
    return { policies, decisions }
  }
}

/** The value of an identity; its whole text where it is of another kind, as of clients without a key. */
function valueIn(identity: string, start: string): string {
  return identity.startsWith(start) ? identity.slice(start.length) : identity
}
