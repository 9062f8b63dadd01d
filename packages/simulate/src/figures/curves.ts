import type { Verdict } from '@sluice/core'
import { decisionIn, hasPermits, type ReadablePlan } from '@sluice/core/internal'
import type { ReadDocument, Resolvers } from '@sluice/policies'
import { type PlayedDocument, policiesOf } from '../documents.js'
import type { RecordContext } from '../replay/record-context.js'
import type { LimitReport, TradeOff } from '../report.js'
import type { Accounts, LimitAccount, OfPolicy, PolicyAccount, Subject } from './accounts.js'
import { ClientSample } from './client-sample.js'
import { followsFromRequests } from './follows-from-requests.js'
import { headroomOf, rankOf } from './rank.js'
import { Candidate, candidatesFor, LimitsBeside, tradeOffOf } from './trade-off.js'
import { WorstWindowBounds, WorstWindows } from './worst-windows.js'

type Data = Readonly<Record<string, unknown>>

/** Fields that are larger or smaller with the limit of a bucket. */
const AMOUNTS = ['limit', 'refill', 'leak', 'capacity', 'burst']

/** Clients beyond which other limits are tried on a share of them: each needs a state for each limit that is tried. */
const MAX_SAMPLED = 8192

/** A whole document with another number in one of its limits, for policies that need the whole replay. */
export interface TriedDocument {
  readonly limit: number
  readonly document: PlayedDocument
  /** Undefined until it is played. */
  accounts: Accounts | undefined
}

/** The curves of one limit. */
class LimitCurve {
  readonly account: LimitAccount
  /** Undefined for permits, which have no window. */
  readonly worst: WorstWindows | undefined
  readonly bounds: WorstWindowBounds
  readonly candidates: readonly Candidate[]
  readonly documents: readonly TriedDocument[]

  constructor(account: LimitAccount, candidates: readonly Candidate[], documents: readonly TriedDocument[]) {
    const { algorithm, window } = account.limit
    this.account = account
    this.worst = hasPermits(algorithm) ? undefined : new WorstWindows(Number(window))
    this.bounds = new WorstWindowBounds(Number(window))
    this.candidates = candidates
    this.documents = documents
  }

  report(
    policy: PolicyAccount,
    sample: ClientSample,
    isGood: ((row: number) => boolean) | undefined,
    isWhole: boolean,
  ): Partial<LimitReport> {
    const headroom =
      this.worst && headroomOf(Number(this.account.limit.limit), this.worst.sorted(isGood ?? (() => true)))
    const [least, greatest] = this.bounds.sorted(isGood ?? (() => true)) ?? []
    const limit = Number(this.account.limit.limit)
    const headroomBounds = least &&
      greatest && { min: headroomOf(limit, greatest) ?? 0, max: headroomOf(limit, least) ?? 0 }
    if (!isWhole) return { headroom, headroomBounds }
    return {
      rank: this.worst && rankOf(this.worst.sorted(() => true)),
      tradeOff: this.#tradeOff(policy, sample),
      headroom,
      headroomBounds,
    }
  }

  #tradeOff({ name, total, clientsSeen }: PolicyAccount, sample: ClientSample): TradeOff | undefined {
    if (this.documents.length > 0) {
      const counts = this.documents.map(({ limit, accounts }) => {
        const played = accounts?.byName.get(name) as PolicyAccount
        const refused = { requestsRefused: played.refused + played.banned, clientsRefused: played.clientsRefused }
        return { limit, ...refused, requests: played.total, clients: played.clientsSeen }
      })
      return tradeOffOf(counts, 1)
    }
    if (this.candidates.length === 0) return undefined
    // A policy may count clients of several kinds.
    const clients = sample.share < 1 ? clientsSeen : sample.sum(() => 1)
    const counts = this.candidates.map(({ limit, refusals }) => ({
      limit,
      requestsRefused: sample.sum((place) => refusals[place] ?? 0),
      clientsRefused: sample.sum((place) => Math.sign(refusals[place] ?? 0)),
      requests: total,
      clients,
    }))
    return tradeOffOf(counts, sample.share)
  }
}

/** The worst windows of clients, and the effect of other limits. */
export class Curves {
  readonly #byLimit = new Map<LimitAccount, LimitCurve>()
  readonly #beside = new Map<PolicyAccount, LimitsBeside>()
  readonly #samples = new Map<PolicyAccount, ClientSample>()
  /** Whether all clients are looked at, and other limits tried; otherwise the good clients alone, for headroom. */
  readonly isWhole: boolean

  private constructor(isWhole: boolean) {
    this.isWhole = isWhole
  }

  /** Makes the candidates of each limit, as policies of their own, or as documents. */
  static async of(accounts: Accounts, document: ReadDocument, resolvers: Resolvers, isWhole: boolean): Promise<Curves> {
    const curves = new Curves(isWhole)
    for (const policy of accounts.byName.values()) {
      const data = document.policies?.[policy.name] as Data
      for (const account of policy.limits) {
        if (typeof account.limit.limit !== 'number') continue
        const tried = isWhole ? changesOf(account, data) : []
        const candidates = followsFromRequests(data) ? await candidatesOf(account, policy.name, tried, resolvers) : []
        const documents = candidates.length > 0 ? [] : await documentsOf(document, policy.name, tried, resolvers)
        curves.#byLimit.set(account, new LimitCurve(account, candidates, documents))
      }
    }
    return curves
  }

  /** The documents that are to be played beside that of the policies. */
  get documents(): readonly TriedDocument[] {
    return [...this.#byLimit.values()].flatMap(({ documents }) => documents)
  }

  /** A policy has decided on a request, whose clients have these rows. */
  decided(
    { policy, limits, subjects }: OfPolicy,
    rows: readonly number[],
    verdict: Verdict,
    now: number,
    context: RecordContext,
  ): void {
    if (verdict.kind !== 'decided' || (!this.isWhole && !context.isGood)) return
    const { plan, costs } = decisionIn(verdict).request
    const { cellOf } = plan as ReadablePlan
    const counts = policy.counts(context)
    const client = clientAmong(subjects)
    const { table } = subjects[client] as Subject
    const sample = this.isWhole ? this.#sampleOf(policy, subjects.length === 1) : undefined
    const place = sample?.placeOf(rows[client] as number, (row) => table.nameOf(row)) ?? -1
    // A candidate is judged by the refusals that its policy adds.
    const isRefusedBeside = place >= 0 && this.#besideOf(policy).decide(verdict, now)
    for (const { account, subject, at } of limits) {
      const curve = account && this.#byLimit.get(account)
      if (!curve) continue
      if (counts && curve.worst) {
        const [row, units] = [rows[subject] as number, unitsOf(account, costs[cellOf[at] as number], context)]
        curve.worst.count(row, now, units)
        curve.bounds.count(row, now, units, context.request.resolutionMs)
      }
      if (place < 0) continue
      for (const candidate of curve.candidates) {
        if (candidate.decide(verdict, now) && !isRefusedBeside) candidate.refused(place)
      }
    }
  }

  /** `isGood`: of the row of a client, where clients are marked good. */
  report(
    policy: PolicyAccount,
    account: LimitAccount,
    isGood: ((row: number) => boolean) | undefined,
  ): Partial<LimitReport> {
    return this.#byLimit.get(account)?.report(policy, this.#sampleOf(policy, true), isGood, this.isWhole) ?? {}
  }

  #besideOf(policy: PolicyAccount): LimitsBeside {
    let beside = this.#beside.get(policy)
    if (!beside) {
      const limits = new Set(policy.limits.map(({ limit }) => limit.policy))
      beside = new LimitsBeside((limit) => limits.has(limit.policy))
      this.#beside.set(policy, beside)
    }
    return beside
  }

  /** A part of the clients would not fill a limit that others share with them. */
  #sampleOf(policy: PolicyAccount, isDivisible: boolean): ClientSample {
    let sample = this.#samples.get(policy)
    if (!sample) {
      const lowest = policy.limits.flatMap((account) => this.#byLimit.get(account)?.candidates[0] ?? [])
      const isRefused = (place: number) => lowest.some(({ refusals }) => (refusals[place] ?? 0) > 0)
      sample = new ClientSample(isDivisible ? MAX_SAMPLED : Number.POSITIVE_INFINITY, isRefused)
      this.#samples.set(policy, sample)
    }
    return sample
  }
}

/** The units that a request would take from a limit. Those of its response are known from the log alone. */
function unitsOf({ limit: { unit } }: LimitAccount, charged = 0, { bytes }: RecordContext): number {
  return unit === 'response-bytes' ? bytes : charged
}

/** The identity that a policy's clients are counted by: the first that tells them apart. */
function clientAmong(subjects: readonly Subject[]): number {
  return Math.max(
    0,
    subjects.findIndex(({ start }) => start !== 'everyone='),
  )
}

/** A policy with another number in one of its limits. */
interface Change {
  readonly limit: number
  readonly policy: Data
}

function changesOf(account: LimitAccount, data: Data): Change[] {
  const before = Number(account.limit.limit)
  if (before === 0) return []
  return candidatesFor(before).map((limit) => ({ limit, policy: changedPolicy(data, account, limit / before) }))
}

async function candidatesOf(
  { limit }: LimitAccount,
  policy: string,
  changes: readonly Change[],
  resolvers: Resolvers,
): Promise<Candidate[]> {
  const candidates: Candidate[] = []
  for (const change of changes) {
    const object = { version: 1, policies: { [policy]: change.policy } }
    const compiled = await policiesOf({ object }, resolvers, policy)
    const made = compiled.byName.get(limit.policy ?? policy)?.options.limits?.find(({ name }) => name === limit.name)
    if (made) candidates.push(new Candidate(change.limit, limit, made))
    await compiled.close()
  }
  return candidates
}

async function documentsOf(
  document: ReadDocument,
  policy: string,
  changes: readonly Change[],
  resolvers: Resolvers,
): Promise<TriedDocument[]> {
  const documents: TriedDocument[] = []
  for (const change of changes) {
    const data = { ...document, policies: { ...document.policies, [policy]: change.policy } } as ReadDocument
    const compiled = await policiesOf({ object: data }, resolvers, policy)
    documents.push({ limit: change.limit, document: { data, policies: compiled, resolvers }, accounts: undefined })
  }
  return documents
}

/** The data of a policy with the amounts of one limit so many times as large. */
function changedPolicy(data: Data, { index, tier }: LimitAccount, times: number): Data {
  const change = (limits: readonly Data[]) =>
    limits.map((each, i) => {
      if (i !== index) return each
      const amounts = AMOUNTS.filter((name) => typeof each[name] === 'number').map((name) => {
        const amount = (each[name] as number) * times
        return [name, Math.max(1, Math.round(amount))]
      })
      return { ...each, ...Object.fromEntries(amounts) }
    })
  if (tier === undefined) return { ...data, limits: change(data.limits as Data[]) }
  const tiers = data.tiers as Readonly<Record<string, readonly Data[]>>
  return { ...data, tiers: { ...tiers, [tier]: change(tiers[tier] as Data[]) } }
}
