import type { EarlyDecisions } from '../../limiter/early-decisions.js'
import type { Engine } from '../../limiter/engine.js'
import { NO_OPTIONS } from '../../limiter/options.js'
import { kindOf } from '../../policy/keyed.js'
import { type KnownRequest, NeedsRequest, UNKNOWN_REQUEST } from '../../policy/known-request.js'
import { planOf } from '../../policy/plan-of-kind.js'
import type { Policy, PolicyChoice } from '../../policy/policy.js'
import { startOf } from '../../store/identity.js'
import { PEEK } from '../../store/store.js'
import { propertiesOf } from '../../util/property-of.js'
import { isBarred, type Verdict } from '../../verdict/verdict.js'
import { requestCost } from '../charging/cost.js'
import { type AnonymousRequests, mayBeMissing } from '../identity/anonymous.js'
import type { Responders } from '../responders/choice.js'
import { traitsOf } from '../responders/responder.js'
import type { Enforcement } from './enforcement.js'
import type { GuardPart, Waits } from './guard-feature.js'

/** The parts of a guard, or of a limiter without HTTP, that decide on a request. */
export interface DecidingParts {
  readonly engine: Engine<never>
  readonly early: EarlyDecisions<never> | undefined
  readonly cost?: unknown
  readonly skip?: unknown
  readonly anonymous?: AnonymousRequests<never> | undefined
  readonly enforcement?: Enforcement
  readonly responders?: Responders<never>
  readonly waits?: Waits<never> | undefined
  readonly features?: readonly GuardPart<never>[]
}

/** What a guard would decide on a request that is known in part. */
export interface PeekedRequest {
  /** By all that is known. Undefined if nothing that is known limits the request. */
  readonly verdict: Verdict | undefined
  /** Whether the verdict would only be reported. */
  readonly isReported: boolean
  /** The kinds of identities, and other things, without which it is not known whether the request is admitted. */
  readonly needs: readonly string[]
  /** Those that may admit it although the verdict refuses it. */
  readonly unless: readonly string[]
  /** The bytes of a body above which an admitted request is refused, also where the verdict would only be reported. */
  readonly maxBody: number | undefined
}

/** What is needed where a function reads the request. */
const NEEDS_REQUEST = 'request'
/** What may admit a refused request after all: a responder that does more than refuse. */
const BY_RESPONDER = 'responder'

/**
 * The decision of a guard on a request that is known in part, in the order of its steps, with nothing charged. What is not known is
 * in `needs` and `unless`: nothing is guessed.
 *
 * @param choice the limits of the request, where their numbers differ from those of the guard
 */
export async function peekKnown(
  parts: DecidingParts,
  known: KnownRequest,
  choice: PolicyChoice<never> = parts.engine.policy,
): Promise<PeekedRequest> {
  const { early, enforcement, features = [] } = parts
  const maxBody = propertiesOf(features, 'maxBody')[0]
  const needs = new Set<string>()
  const unless = new Set<string>(parts.skip ? [NEEDS_REQUEST] : [])
  await early?.pending
  const listed = early?.matchKnown(known)
  // The share that is enforced is of all identities. Of those that lists deny, the first one counts.
  const isShared = enforcement !== undefined && !enforcement.coversAll
  for (const kind of listed?.missing.allow ?? []) unless.add(kind)
  if (listed && !listed.verdict?.allowed && (!listed.verdict || isShared)) {
    for (const kind of listed.missing.deny) needs.add(kind)
  }
  const verdict = listed?.verdict ?? (await byLimits(parts, known, choice, needs, unless))
  if (enforcement?.onlyReports) return { verdict, isReported: true, needs: [], unless: [], maxBody }
  if (!verdict || verdict.allowed) {
    if (!listed?.verdict) for (const need of needsOf(features, known)) needs.add(need)
    return { verdict, isReported: false, needs: [...needs], unless: [], maxBody }
  }
  if (isShared) for (const each of needs) unless.add(each)
  const isReported = isShared && needs.size === 0 && !enforcement.covers(verdict)
  return { verdict, isReported, needs: [...needs], unless: [...unless], maxBody }
}

function needsOf(features: readonly GuardPart<never>[], known: KnownRequest): readonly string[] {
  return propertiesOf(features, 'needsOf').flatMap((needs) => needs(known))
}

async function byLimits(
  parts: DecidingParts,
  known: KnownRequest,
  choice: PolicyChoice<never>,
  needs: Set<string>,
  unless: Set<string>,
): Promise<Verdict | undefined> {
  const { engine, responders, waits } = parts
  const tier = choice.all.some((each) => each.tier !== undefined) ? known.tier : undefined
  const policy = await choice.of(UNKNOWN_REQUEST, known.context as never, tier)
  const { indices, identities } = identitiesIn(policy, known, parts.anonymous, needs, unless)
  if (indices.length === 0) return undefined
  const cost = await costOf(parts, known, choice)
  const resolved = await resolvedOf(policy, known, identities)
  if (resolved === undefined) {
    needs.add(NEEDS_REQUEST)
    return undefined
  }
  const part = { ...resolved, plan: planOf(resolved.plan, indices) }
  const verdict = await engine.decide(part, cost ?? 1, NO_OPTIONS, PEEK)
  if (verdict.allowed && waits?.areBefore(part, cost ?? 1)) needs.add('queue')
  if (!isBarred(verdict)) {
    if (cost === undefined) for (const each of [needs, unless]) each.add(NEEDS_REQUEST)
    const responder = responders && !verdict.allowed ? responders.for(verdict) : undefined
    if (responder && traitsOf(responder).whenUnavailable !== responder) unless.add(BY_RESPONDER)
  }
  return verdict
}

/** The identities of a request that are known, and which of the policy's they are. */
function identitiesIn(
  { keys, starts, where }: Policy<never>,
  known: KnownRequest,
  anonymous: AnonymousRequests<never> | undefined,
  needs: Set<string>,
  unless: Set<string>,
) {
  const indices: number[] = []
  const identities: string[] = []
  keys.forEach((key, i) => {
    const replacement = anonymous?.key
    const isAnonymous = replacement !== undefined && known.has(kindOf(replacement))
    let value = known.valueFor(where, key)
    let start = starts[i] as string
    if (value === undefined && isAnonymous && kindOf(key).split('+').some(mayBeMissing)) {
      value = known.valueFor(where, replacement)
      start = startOf(kindOf(replacement))
    }
    if (value !== undefined) {
      indices.push(i)
      identities.push(start + value)
      return
    }
    for (const kind of kindOf(key).split('+')) {
      if (known.has(kind) && kind !== 'ip') continue
      needs.add(kind)
      // Without such a key, the request would not be limited.
      if (anonymous && !anonymous.key && mayBeMissing(kind)) unless.add(kind)
    }
  })
  return { indices, identities }
}

/** Undefined if it depends on what is not known. */
async function costOf({ cost = 1 }: DecidingParts, known: KnownRequest, choice: PolicyChoice<never>) {
  const units = await asked(() => (typeof cost === 'function' ? cost(UNKNOWN_REQUEST, known.context) : cost))
  return units === undefined ? undefined : requestCost(choice, units)
}

async function resolvedOf(policy: Policy<never>, known: KnownRequest, identities: readonly string[]) {
  const isOfTexts = policy.keys.every((key) => key === undefined)
  const subject = isOfTexts ? (known.valueFor(policy.where, undefined) as never) : UNKNOWN_REQUEST
  return asked(() => policy.resolve(subject, known.context as never, identities))
}

/** The result of functions of requests. Undefined if one reads what is not known. */
async function asked<Result>(call: () => Result): Promise<Awaited<Result> | undefined> {
  try {
    return await call()
  } catch (error) {
    if (error instanceof NeedsRequest) return undefined
    throw error
  }
}
