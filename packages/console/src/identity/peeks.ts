import { type IdentityByKind, type LimitReport, SluiceError, type Verdict } from '@sluice/core'
import {
  decisionIn,
  type GuardOfPolicies,
  getOrInsert,
  guardByPolicies,
  guardOfLimiter,
  guardsOf,
  identitiesIn,
  isOfRequests,
  KnownRequest,
  ownFieldsOf,
  peekLimiter,
  peekPolicies,
} from '@sluice/core/internal'
import type { CheckedOptions } from '../options.js'
import { byKind, type Parts } from './identity.js'
import type { PeekableLimiter } from './limiters.js'
import type { LimitsForIdentity, PeekablePolicies, ShownRequest } from './policies.js'

/** What one limiter, or one policy of a document, would decide on a request of an identity. */
export interface ShownLimits {
  /** The `name` of the limiter. */
  readonly limiter: string
  readonly policy?: string
  readonly tier?: string
  readonly override?: LimitsForIdentity['override']
  /** What it counts of the request: identities as texts, such as `ip=192.0.2.7`. */
  readonly identities?: readonly string[]
  /** Whether a request would be admitted now, by all that is known of it, and why not. */
  readonly allowed?: boolean
  readonly reason?: string
  /** Set where the limiter only reports: nothing is refused. */
  readonly reported?: true
  /** The kinds of identities, and other things, without which it is not known whether it is admitted. */
  readonly needs?: readonly string[]
  /** Those that may admit it although it is refused. */
  readonly unless?: readonly string[]
  /** The bytes of a body above which an admitted request is refused. */
  readonly maxBody?: number
  /** Ms until it would be; absent where it never will, and where that is unknown. */
  readonly retryAfterMs?: number
  readonly block?: unknown
  readonly ban?: unknown
  readonly list?: unknown
  readonly limits?: readonly Omit<LimitReport, 'key'>[]
  /** Why nothing can be said, as a sentence. */
  readonly error?: string
}

type Peeked = Awaited<ReturnType<typeof peekLimiter>>

/** By the decision that a request gets, of each limiter and document: charges nothing. */
export async function limitsOf(parts: Parts, identity: IdentityByKind, request: ShownRequest): Promise<ShownLimits[]> {
  const { path, method, tier, with: others = [] } = ownFieldsOf(request)
  const known = { identities: [identity, ...others.map(byKind)], path, method }
  const ofRequest = (named = tier) => new KnownRequest({ ...known, tier: named })
  const shown = [
    ...parts.limiters.flatMap((limiter) => peeksOfLimiter(limiter, ofRequest, tier)),
    ...parts.documents.map((document) => peeksOfDocument(parts, document, ofRequest)),
  ]
  return (await Promise.all(shown)).flat().map(ownFieldsOf)
}

function peeksOfLimiter(
  limiter: PeekableLimiter,
  ofRequest: (tier?: string) => KnownRequest,
  tier: string | undefined,
): Promise<ShownLimits[]>[] {
  const { name, kinds, tiers } = limiter
  const known = ofRequest()
  // Others decide on what the application names.
  if (!isOfRequests(limiter) && !kinds.some((kind) => kind.split('+').every((each) => known.has(each)))) return []
  const names = tiers.length === 0 ? [undefined] : tiers.filter((each) => tier === undefined || each === tier)
  return names.map(async (each) => {
    const of = { limiter: name, ...(each !== undefined && { tier: each }) }
    return [await orError(of, async () => ({ ...of, ...shownOf(await peekLimiter(limiter, ofRequest(each))) }))]
  })
}

async function peeksOfDocument(
  { store }: Pick<Parts, 'store'>,
  { name, policies }: CheckedOptions<never>['documents'][number],
  ofRequest: () => KnownRequest,
): Promise<ShownLimits[]> {
  const all = guardsOf(policies).filter((guard) => guard.name === name && guard.store === store)
  try {
    const guards = all.length > 0 ? all : [ownGuardOf(store, name, policies)]
    const source = askedOf(policies)
    const peeked = (await Promise.all(guards.map((guard) => peekPolicies(guard, source, ofRequest())))).flat()
    const shown = peeked.map(({ policy, tier, override, ...rest }) => ({
      limiter: name,
      policy,
      ...(tier !== undefined && { tier }),
      ...(override && { override }),
      ...shownOf(rest),
    }))
    return guards.length === 1 ? shown : differing(shown)
  } catch (error) {
    return [await orError({ limiter: name }, () => Promise.reject(error))]
  }
}

/** Declarations of policies do not show it, as it is for the console alone. */
function askedOf(policies: PeekablePolicies): Parameters<typeof peekPolicies>[1] {
  const asked = policies as Partial<Parameters<typeof peekPolicies>[1]>
  if (typeof asked.forKnown === 'function') return asked as Parameters<typeof peekPolicies>[1]
  throw new Error('this version of @sluice/policies cannot be asked what it decides: update it')
}

/** Guards of one document differ only in their code. */
function differing(all: readonly ShownLimits[]): ShownLimits[] {
  return [...new Map(all.map((each) => [JSON.stringify(each), each])).values()]
}

const ownGuards = new WeakMap<PeekablePolicies, Map<string, GuardOfPolicies>>()

/** The guard of a document that no limiter of this process decides by. It has no say in which documents are valid. */
function ownGuardOf(store: Parts['store'], name: string, policies: PeekablePolicies): GuardOfPolicies {
  const byName = getOrInsert(ownGuards, policies, () => new Map<string, GuardOfPolicies>())
  const known = byName.get(name)
  if (known?.store === store) return known
  const source = {
    match: () => undefined,
    get byName() {
      return policies.byName
    },
  }
  const { limiter } = guardByPolicies({ store, name, policies: source as never })
  const guard = guardOfLimiter(limiter) as GuardOfPolicies
  byName.set(name, guard)
  return guard
}

/** A failure of one limiter is shown beside the others. */
async function orError(of: ShownLimits, run: () => Promise<ShownLimits>): Promise<ShownLimits> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof SluiceError && error.code === 'STORE_UNAVAILABLE') throw error
    return { ...of, error: error instanceof Error ? error.message : 'it decides only on requests' }
  }
}

function shownOf({ verdict, isReported, needs, unless, maxBody }: Peeked) {
  return {
    ...(verdict && ofVerdict(verdict)),
    ...(isReported && { reported: true as const }),
    ...(needs.length > 0 && { needs }),
    ...(unless.length > 0 && { unless }),
    ...(maxBody !== undefined && { maxBody }),
  }
}

function ofVerdict(verdict: Verdict) {
  const { allowed, reason, retryAfterMs, block, ban, list, limits } = verdict
  return {
    allowed,
    identities: [...identitiesIn(decisionIn(verdict))],
    ...(reason !== undefined && { reason }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(block && { block }),
    ...(ban && { ban }),
    ...(list && { list }),
    limits: limits.map((limit) => ({ ...limit })),
  }
}

/** The decisions on one request, by what they say of it. */
export interface Decided {
  /** The bytes of a body above which it is refused, even where it is admitted. Absent without a bound. */
  readonly maxBody?: number

  /** Those that refuse it. */
  readonly now: readonly ShownLimits[]
  /** Those that would refuse it, and only report that. */
  readonly reported: readonly ShownLimits[]
  /** Those that admit it as far as is known, and those of which nothing can be said. */
  readonly unknown: readonly ShownLimits[]
}

export function decided(all: readonly ShownLimits[]): Decided {
  const isRefused = ({ allowed }: ShownLimits) => allowed === false
  const bounds = all.flatMap(({ maxBody }) => maxBody ?? [])
  return {
    ...(bounds.length > 0 && { maxBody: Math.min(...bounds) }),
    now: all.filter((each) => isRefused(each) && !each.reported),
    reported: all.filter((each) => isRefused(each) && each.reported),
    unknown: all.filter((each) => !isRefused(each) && (each.needs || each.error !== undefined)),
  }
}

/** Those that count the identity, or refuse it: of the others there is nothing to show. */
export function countsIt({ limits = [], allowed, error, list }: ShownLimits): boolean {
  return limits.length > 0 || allowed === false || error !== undefined || list !== undefined
}

/** The addresses of a request as limits count them. */
export function groupsIn(all: readonly ShownLimits[]): string[] {
  const identities = all.flatMap((each) => each.identities ?? [])
  return [...new Set(identities)].filter((text) => text.startsWith('ip=')).map((text) => text.slice(3))
}
