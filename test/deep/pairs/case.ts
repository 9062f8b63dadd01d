/** A limit as a document of policies has it. In code it may have a key of its own. All durations are ms. */
export interface LimitOf {
  readonly algorithm:
    | 'slidingLog'
    | 'fixedWindow'
    | 'slidingWindow'
    | 'gcra'
    | 'tokenBucket'
    | 'leakyBucket'
    | 'concurrency'
  readonly limit?: number
  readonly window?: number | 'day'
  readonly anchor?: 'clock' | 'first-request'
  readonly segments?: number
  readonly edge?: 'weighted' | 'strict' | 'dropped'
  readonly burst?: number
  readonly capacity?: number
  readonly refill?: number
  readonly leak?: number
  readonly every?: number
  readonly style?: 'greedy' | 'interval'
  readonly queue?: true
  readonly ttl?: number
  readonly unit?: Unit
  readonly estimate?: 'cap'
  /** By priority. */
  readonly reserve?: Readonly<Record<string, number>>
  readonly lease?: { readonly size: number; readonly ttl: number }
  readonly key?: Kind
}

export type Unit = 'tokens' | 'cents'
export const UNITS: readonly Unit[] = ['tokens', 'cents']
export type Kind = 'client' | 'tenant' | 'everyone'
export type Units = Readonly<Partial<Record<string, number>>>
export type Tier = 'free' | 'pro'

export interface PolicyOf {
  readonly limits?: readonly LimitOf[]
  /** Instead of limits. */
  readonly tiers?: Readonly<Record<Tier, readonly LimitOf[]>>
  readonly onDeny?: 'charge'
  readonly ban?: { readonly after: number; readonly within: number; readonly for: readonly number[] }
  readonly count?: { readonly only: 'success' | 'failure'; readonly within: number }
  readonly enforce?: { readonly mode: 'report' } | { readonly percent: number }
  readonly allow?: readonly string[]
  readonly deny?: readonly string[]
  readonly anonymous?: 'skip'
  /** Of a document: how many times the units of a request it counts. */
  readonly times?: number
  readonly consistency?: { readonly syncEvery: number }
  readonly sharedTurns?: true
}

/** What limits the requests: a limiter without HTTP, the options of `rateLimit`, or these in a document of policies. */
export type Way = 'limiter' | 'rateLimit' | 'document'

/** Who asks, and for how much. An event without a client is of an anonymous request. */
export interface Request {
  readonly client?: string
  readonly tenant: string
  readonly tier: Tier
  readonly priority: number
  readonly cost: number | Units
}

/** How a request comes over HTTP. */
export interface Sent {
  /** Its handler writes to the raw response. */
  readonly raw?: true
  /** On the connection of this request, if that is open. */
  readonly behind?: number
  /** It asks for an upgrade, as to a WebSocket. */
  readonly upgrade?: true
}

type Do<What extends string, Fields> = What extends What ? { readonly do: What } & Fields : never

interface At {
  /** The process that does it. @default the first */
  readonly at?: number
}
interface Of {
  /** The number of an admitted request, modulo those so far. */
  readonly which: number
}
/** Without an id, the process does it that has admitted the request. */
interface ById extends Of, At {
  readonly byId?: true
}
interface By extends At {
  readonly client: string
}

export type Event =
  | Do<'request', Request & Sent & At & { readonly times?: number }>
  | Do<'peek', Request & At>
  /** The time until the last refusal said that there is room, less `early`. */
  | Do<'wait', { readonly ms: number | 'retry'; readonly early?: number }>
  /** The handler ends the response: over HTTP also by an error, or by the end of the connection. */
  | Do<'end', Of & { readonly status: number; readonly by?: 'error' | 'destroy' }>
  /** The handler sends the head and the first bytes. */
  | Do<'begin', Of & { readonly status: number }>
  /** The client ends its connection. */
  | Do<'leave', Of & { readonly reset?: true }>
  | Do<'settle', ById & { readonly units: number | Units }>
  | Do<'meter', Of & Stream>
  | Do<'refund' | 'release' | 'renew', ById>
  | Do<'reset' | 'unblock' | 'strike', By>
  | Do<'block', By & { readonly ms: number }>
  /** The store is away for a process, and is back. */
  | Do<'outage' | 'return', At>
  /** All processes exchange their relaxed counts. */
  | { readonly do: 'exchange' }

export type Unavailable = { readonly decide: 'allow' | 'deny' } | { readonly share: number }

export interface Stream {
  readonly unit: Unit
  readonly length: number
  readonly step: number
  readonly onExhausted: 'cut' | 'finish'
  /** The total that it is settled for. Without, it is ended. */
  readonly total?: number
}

/** Policies with events in their order. One policy, unless it is a document. */
export interface Case {
  readonly way: Way
  /** The framework whose server they are in front of. */
  readonly server?: string
  /** How many processes limit requests, by a store each, on one Redis. @default 1 */
  readonly processes?: number
  readonly policies: readonly PolicyOf[]
  /** How long charges can be changed by their ids. */
  readonly keep?: number
  /** Whether the stores have a deny cache. */
  readonly denyCache?: boolean
  /** How requests are decided while the store is away. */
  readonly unavailable?: Unavailable
  readonly events: readonly Event[]
}

export function limitsOf({ limits, tiers }: PolicyOf): readonly LimitOf[] {
  return limits ?? Object.values(tiers ?? {}).flat()
}

export function unitOf({ algorithm, unit }: LimitOf): string {
  return algorithm === 'concurrency' ? 'concurrent-requests' : (unit ?? 'requests')
}

/** A lease makes a bucket smaller by the units that come back in its `ttl`: docs/fewer-round-trips.md, Costs. */
export function capacityOf(of: LimitOf): number {
  const { limit, refill, leak, burst, capacity, every = of.window, style, lease } = of
  const amount = (limit ?? refill ?? leak) as number
  const whole = amount === 0 ? 0 : (burst ?? capacity ?? amount)
  const isTightened = lease && isBucket(of) && style !== 'interval' && whole > 0
  return isTightened ? whole - Math.ceil((lease.ttl * amount) / (every as number)) : whole
}

export function isBucket({ algorithm }: LimitOf): boolean {
  return algorithm === 'gcra' || algorithm === 'tokenBucket' || algorithm === 'leakyBucket'
}

/** Units by name that limits count. */
export function unitsOf(policy: PolicyOf): Unit[] {
  return [...new Set(limitsOf(policy).flatMap(({ unit }) => unit ?? []))]
}

/** The units that a policy of a document counts of a request: each by its function. */
export function costIn(policy: PolicyOf, cost: number | Units): Record<string, number> {
  const { times = 1 } = policy
  const named = typeof cost === 'number' ? {} : cost
  return Object.fromEntries(unitsOf(policy).map((unit) => [unit, times * (named[unit] ?? 0)]))
}

export function hasReserve({ limits, tiers }: Pick<PolicyOf, 'limits' | 'tiers'>): boolean {
  return limitsOf({ limits, tiers }).some(({ reserve }) => reserve !== undefined)
}

/** Units of which a process enforces a share: docs/when-redis-fails.md, Local decisions. */
export function partOf(units: number, share: number): number {
  return units === 0 ? 0 : Math.max(1, Math.floor(units * share + 1e-9))
}
