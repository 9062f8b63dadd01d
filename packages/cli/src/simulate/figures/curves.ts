import type { Verdict } from '@sluice/core'
import { hasPermits } from '@sluice/core/internal'
import type { ReadDocument, Resolvers } from '@sluice/policies'
import { policiesOf } from '../documents.js'
import type { LimitReport } from '../report.js'
import type { Accounts, LimitAccount, PolicyAccount, Subject } from './accounts.js'
import { headroomOf, rankOf } from './rank.js'
import { Candidate, candidatesFor, tradeOffOf } from './trade-off.js'
import { WorstWindows } from './worst-windows.js'

type Data = Readonly<Record<string, unknown>>

/** Fields that are larger or smaller with the limit of a bucket. */
const AMOUNTS = ['limit', 'refill', 'leak', 'capacity', 'burst']

/** The curves of one limit. */
class LimitCurve {
  readonly account: LimitAccount
  readonly worst: WorstWindows
  readonly candidates: readonly Candidate[]
  requests = 0

  constructor(account: LimitAccount, candidates: readonly Candidate[]) {
    this.account = account
    this.worst = new WorstWindows(Number(account.limit.window))
    this.candidates = candidates
  }

  report(
    policy: PolicyAccount,
    isGood: ((row: number) => boolean) | undefined,
    isWhole: boolean,
  ): Partial<LimitReport> {
    const limit = Number(this.account.limit.limit)
    const headroom = headroomOf(limit, this.worst.sorted(isGood ?? (() => true)))
    if (!isWhole) return { headroom }
    return {
      rank: rankOf(this.worst.sorted(() => true)),
      tradeOff:
        this.candidates.length > 0 ? tradeOffOf(this.candidates, policy.total, policy.clientsSeen, 1) : undefined,
      headroom,
    }
  }
}

/** The worst windows of clients, and the effect of other limits. */
export class Curves {
  readonly #byLimit = new Map<LimitAccount, LimitCurve>()
  /** Whether all clients are looked at, and other limits tried; otherwise the good clients alone, for headroom. */
  readonly isWhole: boolean

  private constructor(isWhole: boolean) {
    this.isWhole = isWhole
  }

  /** Makes the candidates of each limit, as policies of their own. */
  static async of(accounts: Accounts, document: ReadDocument, resolvers: Resolvers, isWhole: boolean): Promise<Curves> {
    const curves = new Curves(isWhole)
    for (const policy of accounts.byName.values()) {
      const data = document.policies?.[policy.name] as Data
      for (const account of policy.limits) {
        if (hasPermits(account.limit.algorithm) || typeof account.limit.limit !== 'number') continue
        const candidates =
          isWhole && isTried(data, account) ? await candidatesOf(account, policy.name, data, resolvers) : []
        curves.#byLimit.set(account, new LimitCurve(account, candidates))
      }
    }
    return curves
  }

  /** A policy has decided on a request, whose clients have these rows. */
  decided(
    limits: readonly { readonly account: LimitAccount | undefined; readonly subject: number }[],
    subjects: readonly Subject[],
    rows: readonly number[],
    verdict: Verdict,
    now: number,
    isGood: boolean,
  ): void {
    if (verdict.kind !== 'decided' || (!this.isWhole && !isGood)) return
    for (const { account, subject } of limits) {
      const curve = account && this.#byLimit.get(account)
      if (!curve) continue
      const row = rows[subject] as number
      curve.worst.count(row, now)
      for (const candidate of curve.candidates) {
        if (!candidate.decide(verdict, now)) continue
        candidate.requestsRefused++
        for (let i = 0; i < subjects.length; i++) candidate.refused(rows[i] as number)
      }
    }
  }

  /** `isGood`: of the row of a client, where clients are marked good. */
  report(
    policy: PolicyAccount,
    account: LimitAccount,
    isGood: ((row: number) => boolean) | undefined,
  ): Partial<LimitReport> {
    return this.#byLimit.get(account)?.report(policy, isGood, this.isWhole) ?? {}
  }
}

/**
 * Whether the decisions of a limit follow from the requests alone: not from responses, waits or permits, which other limits would
 * change.
 */
function isTried(data: Data, { limit }: LimitAccount): boolean {
  const all = JSON.stringify(data)
  return (
    data.count === undefined &&
    (limit.unit ?? 'requests') === 'requests' &&
    !/"(delay|queue)"|"concurrency"|-bytes"/.test(all)
  )
}

async function candidatesOf(
  account: LimitAccount,
  policy: string,
  data: Data,
  resolvers: Resolvers,
): Promise<Candidate[]> {
  const { limit } = account
  const before = Number(limit.limit)
  if (before === 0) return []
  const candidates: Candidate[] = []
  for (const each of candidatesFor(before)) {
    const changed = changedPolicy(data, account, each / before)
    const compiled = await policiesOf({ object: { version: 1, policies: { [policy]: changed } } }, resolvers, policy)
    const made = compiled.byName.get(limit.policy ?? policy)?.options.limits?.find(({ name }) => name === limit.name)
    if (made) candidates.push(new Candidate(each, limit, made))
    await compiled.close()
  }
  return candidates
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
