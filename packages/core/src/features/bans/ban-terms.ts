import { bring } from '../../kinds/known.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import { slidingLog } from '../../policy/limits/sliding-log.js'
import type { PolicyBasis, PolicyPart } from '../../policy/policy-feature.js'
import { isPrivateAddress } from '../../policy/private-address.js'
import { startOf } from '../../store/identity.js'
import { type BanTerms, EVERY_POLICY, MAX_RUNGS, NO_TERMS, PLAIN_CELL, type Plan } from '../../store/store.js'
import { type Duration, durationText, spanMs } from '../../util/duration.js'
import { invalidPolicy, neverBeside, show, wrongPolicy } from '../../util/errors.js'
import { FORMS, type Use } from '../../util/option-hints.js'
import type { PartKey } from '../../util/parts.js'
import { propertyOf } from '../../util/property-of.js'
import { knownOptions, oneOf, wholeNumber } from '../../util/validate.js'

/** Bans that grow: an identity that is refused again and again is refused for a while whatever room there is, and longer each time. */
// biome-ignore lint/correctness/noUnusedVariables: what request-bans.ts adds takes it
export interface BanOptions<Subject> {
  /**
   * The kind of identity that is banned, such as `'ip'`: one that the policy counts.
   *
   * Needed where it counts several.
   * @default the only one
   */
  readonly by?: string
  /** Strikes that start a ban: 1 to 1,000. Each final refusal by a limit is one. */
  readonly after: number
  /** How long a strike counts: a sliding window, exact. Whole milliseconds or a duration. */
  readonly within: Duration
  /**
   * How long bans last: the first, the second and so on, each longer than the one before, up to 32; the last repeats.
   *
   * Or `{ first, times, max }`: the first, and each `times` as long as the one before, up to `max`.
   */
  readonly for: readonly Duration[] | BanGrowth
  /**
   * How long after the last strike and the end of the last ban the next ban is of the first rung again.
   *
   * At least `within`.
   * @default '30d'
   */
  readonly forgetAfter?: Duration
  /**
   * Makes each ban longer by a random time of up to this, so that no client knows to the second when it ends.
   *
   * At most as long as the last rung.
   * @default none
   */
  readonly jitter?: Duration
  /** Whether a ban holds for this policy alone, or for all policies of the store that count the same kind. @default 'policy' */
  readonly scope?: 'policy' | 'store'
  /** @internal The policy that it is of, where policies are decided under the name of one limiter. @default the limiter's */
  readonly policy?: string
  /**
   * Whether loopback and private addresses may be banned too.
   *
   * Behind a proxy that is not named, all clients have such an address.
   * @default false
   */
  readonly private?: boolean
}

/** The option of a policy. */
export interface BanOption<Subject> {
  /** Bans identities that are refused again and again, for longer each time. See docs/bans.md. @default none */
  readonly ban?: BanOptions<Subject> | Use<typeof FORMS.ban, BanOptions<Subject>>
}

/** A ladder by a formula. */
export interface BanGrowth {
  readonly first: Duration
  /** Above 1, up to 1,000; may be a fraction. @default 2 */
  readonly times?: number
  /** The longest. */
  readonly max: Duration
}

/** request-bans.ts adds to these. */
const BAN_OPTIONS = ['by', 'after', 'within', 'for', 'forgetAfter', 'jitter', 'scope', 'policy', 'private'] as const

/** Each strike of an identity is stored by itself. */
const MAX_STRIKES = 1000
const MAX_TIMES = 1000

/** The option `ban` of a policy, checked. */
export interface PolicyBan {
  readonly by: string
  readonly jitterMs: number
  /** The terms but for the index of the banned identity, which each plan has. */
  readonly terms: Omit<BanTerms, 'identity'>
  /** Whether refusals are strikes: where `count` names outcomes, those are instead. */
  readonly countsRefusals: boolean
  /** Whether an identity, as text, can be banned: it is of the kind, and none of those that are spared. */
  readonly covers: (identity: string) => boolean
  /** Admits one strike a minute of an identity: for requests that another site may have caused. */
  readonly oncePerMinute: Plan
}

/** The ban of a policy whose refusals start bans. */
export const POLICY_BAN: PartKey<PolicyBan> = { name: 'ban' }

/** @throws SluiceError `INVALID_POLICY` */
export function addBan(
  { where, name, limits, kinds, keys, identityOf, parts }: PolicyBasis,
  { ban: option }: BanOption<never>,
): PolicyPart | undefined {
  if (option === undefined) return undefined
  const ban = banFor(where, name, kinds, option)
  // Units leased elsewhere would still be spent although their key is banned.
  if (limits.some(({ lease }) => lease !== undefined)) neverBeside(where, 'ban', 'lease', option)
  refuseNetworks(`${where}: ban`, keys[identityOf(ban.by)])
  parts.set(POLICY_BAN, ban)
  const { scope } = ban.terms
  const banningPolicy = scope === name || scope === EVERY_POLICY ? undefined : scope
  return { terms: () => ({ ban: Object.freeze({ ...ban.terms, identity: identityOf(ban.by) }), banningPolicy }) }
}

/** How many ms are added to a ban that starts now. Drawn here, so that memory and Redis decide alike. */
export function drawJitter({ jitterMs }: PolicyBan): number {
  return jitterMs === 0 ? 0 : Math.floor(Math.random() * (jitterMs + 1))
}

/** The strike that a refusal of a request counts as: see `StoreRequest.strike`. Undefined if it is none. */
export function strikeOf(ban: PolicyBan, terms: BanTerms, identities: readonly string[]): number | undefined {
  return ban.countsRefusals && ban.covers(identities[terms.identity] as string) ? drawJitter(ban) : undefined
}

/**
 * @param kinds what the policy counts
 * @throws SluiceError `INVALID_POLICY`
 */
function banFor(policyWhere: string, policy: string, kinds: readonly string[], option: unknown): PolicyBan {
  const where = `${policyWhere}: ban`
  knownOptions(where, option, [...BAN_OPTIONS, ...ADDED_BAN_OPTIONS], {}, FORMS.ban)
  const options = option as BanOptions<unknown>
  const by = kindFor(where, kinds, options.by)
  const after = wholeNumber(where, 'after', options.after, 1)
  if (after > MAX_STRIKES) invalidPolicy(where, 'after', `at most ${MAX_STRIKES} strikes`, after)
  const withinMs = spanMs(where, 'within', options.within)
  const rungs = ladder(where, options.for)
  const longest = rungs[rungs.length - 1] as number
  const { forgetAfter = Math.max(THIRTY_DAYS_MS, withinMs), scope: ofBan = 'policy' } = options
  const forgetAfterMs = spanMs(where, 'forgetAfter', forgetAfter)
  if (forgetAfterMs < withinMs) {
    invalidPolicy(where, 'forgetAfter', `at least within, ${durationText(withinMs)}`, forgetAfter)
  }
  const jitterMs = options.jitter === undefined ? 0 : spanMs(where, 'jitter', options.jitter)
  if (jitterMs > longest) {
    invalidPolicy(where, 'jitter', `at most the last ban, ${durationText(longest)}`, options.jitter)
  }
  const isOfStore = oneOf(where, 'scope', ofBan, ['policy', 'store']) === 'store'
  const scope = isOfStore ? EVERY_POLICY : (options.policy ?? policy)
  const { private: isPrivateToo = false } = options
  if (typeof isPrivateToo !== 'boolean') invalidPolicy(where, 'private', 'true or false', isPrivateToo)
  const start = startOf(by)
  const spares = by === 'ip' && !isPrivateToo
  return {
    by,
    jitterMs,
    terms: {
      scope,
      policy,
      after,
      withinMs,
      forgetAfterMs,
      rungs,
    },
    countsRefusals: (option as { count?: unknown }).count === undefined,
    // Where a key is missing, another kind may be counted in its place.
    covers: (identity) => identity.startsWith(start) && !(spares && isPrivateAddress(identity, start.length)),
    oncePerMinute: planOfOne(where, `.once.${scope}`, start),
  }
}

/** Admits one unit a minute. `name`: begins with a dot, as no policy of a user does. */
function planOfOne(where: string, name: string, start: string): Plan {
  const { kind, id, params, report } = slidingLog({ limit: 1, window: 60_000 }).resolve(where, 1, 60_000)
  const limits = [{ ...report, name: 'strikes', unit: 'requests' }]
  return Object.freeze({
    policy: name,
    cells: [{ ...PLAIN_CELL, kernel: bring(kind), id, params, limits }],
    identities: 1,
    starts: [start],
    reports: 1,
    ...NO_TERMS,
  })
}

const THIRTY_DAYS_MS = 30 * 86_400_000

/** Further options of limiters of requests, which request-bans.ts checks. */
export const ADDED_BAN_OPTIONS = ['count', 'respond', 'trap'] as const

function kindFor(where: string, kinds: readonly string[], by: unknown): string {
  const known = kinds.map(show).join(' or ')
  if (by === undefined) {
    if (kinds.length === 1) return kinds[0] as string
    invalidPolicy(where, 'by', `the kind that is banned, as the policy counts several: ${known}`, by)
  }
  return kinds.find((kind) => kind === by) ?? invalidPolicy(where, 'by', `a kind that the policy counts: ${known}`, by)
}

/** A ban of a network would be a block that all processes keep in memory. */
function refuseNetworks(where: string, key: KeyFunction<never> | undefined): void {
  const { ipv4 = 32 } = (key && propertyOf(key, 'bits')) ?? {}
  if (ipv4 === 32) return
  const remedy = 'add a limit by byIp(), whose addresses are banned then, or leave out ban'
  wrongPolicy(
    `${where}: by: expected single addresses of IPv4, got networks by byIp({ ipv4Prefix: ${ipv4} }): ${remedy}`,
  )
}

function ladder(where: string, option: unknown): readonly number[] {
  const rungs = Array.isArray(option) ? listed(where, option) : grown(where, option)
  if (rungs.length > MAX_RUNGS) invalidPolicy(where, 'for', `at most ${MAX_RUNGS} rungs, got ${rungs.length}`, option)
  return Object.freeze(rungs)
}

function listed(where: string, durations: readonly unknown[]): number[] {
  if (durations.length === 0) invalidPolicy(where, 'for', 'durations, such as ["10m", "1h", "1d"]', durations)
  const rungs = durations.map((duration, i) => spanMs(where, `for[${i}]`, duration))
  rungs.forEach((ms, i) => {
    const before = rungs[i - 1]
    if (before !== undefined && ms <= before) {
      invalidPolicy(where, `for[${i}]`, `a longer time than the rung before, ${durationText(before)}`, durations[i])
    }
  })
  return rungs
}

function grown(where: string, option: unknown): number[] {
  if (typeof option !== 'object' || option === null) {
    invalidPolicy(where, 'for', 'durations, such as ["10m", "1h", "1d"], or { first, times, max }', option)
  }
  knownOptions(`${where}: for`, option, ['first', 'times', 'max'])
  const { first, times = 2, max } = option as BanGrowth
  const firstMs = spanMs(where, 'for: first', first)
  const maxMs = spanMs(where, 'for: max', max)
  if (maxMs < firstMs) invalidPolicy(where, 'for: max', `at least the first, ${durationText(firstMs)}`, max)
  if (typeof times !== 'number' || !(times > 1 && times <= MAX_TIMES)) {
    invalidPolicy(where, 'for: times', `a number above 1, up to ${MAX_TIMES}`, times)
  }
  const rungs = [firstMs]
  for (let ms = firstMs; ms < maxMs && rungs.length <= MAX_RUNGS; ) {
    // Whole ms, and at least one more than before: a factor near 1 of a short time would not grow.
    ms = Math.min(maxMs, Math.max(ms + 1, Math.floor(ms * times)))
    rungs.push(ms)
  }
  if (rungs.length > MAX_RUNGS) {
    invalidPolicy(where, 'for: times', `a factor that reaches max within ${MAX_RUNGS} rungs`, times)
  }
  return rungs
}
