import type { Limit } from '@sluice/core'
import { countsOnly, hasPermits } from '@sluice/core/internal'
import type { Policies } from '@sluice/policies'
import { LEFT } from '../replay/simulated-response.js'
import type { ClientTable } from './client-table.js'
import { Waits } from './waits.js'

/** The counts of one limit. */
export class LimitAccount {
  readonly name: string
  readonly limit: Limit
  /** Its place in the policy, or in a tier of it. */
  readonly index: number
  readonly tier: string | undefined
  /** Refusals in which it had no room. */
  refused = 0

  constructor(name: string, limit: Limit, index: number, tier: string | undefined) {
    this.name = name
    this.limit = limit
    this.index = index
    this.tier = tier
  }
}

/** The counts of one policy. */
export class PolicyAccount {
  readonly name: string
  readonly isReported: boolean
  readonly limits: LimitAccount[] = []
  total = 0
  refused = 0
  banned = 0
  delayed = 0
  clientsSeen = 0
  clientsRefused = 0
  readonly waits = new Waits()
  readonly bans = { begun: 0, longestMs: 0 }
  /** Whether its refusals can begin bans. */
  hasBans = false
  /** The statuses that count. Undefined if all do. */
  countsStatus: ((status: number) => boolean) | undefined

  constructor(name: string, isReported: boolean) {
    this.name = name
    this.isReported = isReported
  }

  /** Whether a request counts by its response in the log. A client that left without one counts. */
  counts({ status }: { readonly status: number | undefined }): boolean {
    const isSent = status !== undefined && status !== LEFT
    return !this.countsStatus || !isSent || this.countsStatus(status)
  }

  waited(ms: number): void {
    this.delayed++
    this.waits.add(ms)
  }

  banBegan(ms: number): void {
    this.bans.begun++
    if (ms > this.bans.longestMs && ms < Number.MAX_SAFE_INTEGER) this.bans.longestMs = ms
  }
}

/** The accounts of a document's policies, and how many of them count each kind of identity. */
export class Accounts {
  readonly byName = new Map<string, PolicyAccount>()
  /** Whether a limit counts bytes of requests. */
  countBytes = false
  /** The shortest window of any limit, but for permits. */
  shortestWindowMs = Number.POSITIVE_INFINITY
  readonly #limits = new Map<string, LimitAccount>()
  readonly #columns = new Map<string, string[]>()

  constructor(policies: Policies) {
    for (const [variant, matched] of policies.byName) this.#add(variant, matched)
  }

  #add(variant: string, { options }: Matched): void {
    const name = nameOf(variant)
    let account = this.byName.get(name)
    if (!account) {
      account = new PolicyAccount(name, options.enforce?.mode === 'report')
      this.byName.set(name, account)
    }
    account.hasBans ||= options.ban !== undefined
    account.countsStatus = statusesOf(options.count)
    const tier = variant === name ? undefined : variant.slice(name.length + 1)
    for (const [index, limit] of (options.limits ?? []).entries()) {
      const shown = tier === undefined ? String(limit.name) : `${limit.name} (${tier})`
      const own = new LimitAccount(shown, limit, index, tier)
      account.limits.push(own)
      this.countBytes ||= limit.unit === 'content-bytes'
      if (!hasPermits(limit.algorithm)) {
        this.shortestWindowMs = Math.min(this.shortestWindowMs, Number(limit.window))
      }
      this.#limits.set(`${limit.policy}\n${limit.name}`, own)
      const columns = this.#columnsOf(limit.key?.kind ?? 'ip')
      if (!columns.includes(name)) columns.push(name)
    }
  }

  /** Of a limit as a plan has it, which an override may have changed. */
  limitOf({ policy, name }: Limit): LimitAccount | undefined {
    return this.#limits.get(`${policy}\n${name}`)
  }

  /** Undefined for a limit that is of no policy of the document. */
  policyOf({ policy = '' }: Limit): PolicyAccount | undefined {
    return this.byName.get(nameOf(policy))
  }

  /** The policies that count identities of a kind, in the order of their columns in the table of that kind. */
  #columnsOf(kind: string): string[] {
    let columns = this.#columns.get(kind)
    if (!columns) {
      columns = []
      this.#columns.set(kind, columns)
    }
    return columns
  }

  columnOf(kind: string, policy: PolicyAccount): number {
    return this.#columnsOf(kind).indexOf(policy.name)
  }

  columnCount(kind: string): number {
    return this.#columnsOf(kind).length
  }

  policyAt(kind: string, column: number): PolicyAccount {
    return this.byName.get(this.#columnsOf(kind)[column] as string) as PolicyAccount
  }
}

/** Documents have no functions for this. */
function statusesOf(count: Matched['options']['count']): PolicyAccount['countsStatus'] {
  return count && (countsOnly('count', count.only, () => true) as PolicyAccount['countsStatus'])
}

type Matched = Policies['byName'] extends ReadonlyMap<string, infer Value> ? Value : never

/** The name of a policy without that of its tier. */
function nameOf(variant: string): string {
  return variant.split('.', 1)[0] as string
}

/** One kind of identities that a plan counts for a policy. */
export interface Subject {
  /** Its place among the identities of a request. */
  readonly identity: number
  /** What precedes the value in the text of an identity: `ip=`. */
  readonly start: string
  readonly table: ClientTable
  readonly column: number
}

/** What one plan counts for one policy. */
export interface OfPolicy {
  readonly policy: PolicyAccount
  /** `account` is undefined for limits that the document lacks. `subject`: the place of its identity among `subjects`. */
  readonly limits: readonly {
    readonly at: number
    readonly account: LimitAccount | undefined
    readonly subject: number
  }[]
  readonly subjects: readonly Subject[]
}
