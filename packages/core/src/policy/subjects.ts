import type { HttpContext } from '../request/context.js'
import { type IdentityByKind, identityIn, type KeyValue, startOf } from '../store/identity.js'
import { networkText } from '../util/ip-range.js'
import { type MaybePromise, whenKnown } from '../util/when-known.js'
import { givenIn, keysOf, kindsOf, type ReplacementKey, wrongIdentity } from './given-identities.js'
import type { Given, GivenKeys } from './kinds.js'
import type { ReadablePlan } from './plan.js'
import type { Policy, PolicyChoice, Resolved } from './policy.js'

export interface SubjectsOptions<Subject> {
  /** Whether an argument names an identity, as text or by its kind, instead of being a request for key functions. */
  readonly namesIdentity: (subject: unknown) => boolean
  /**
   * Whether the arguments are keys as text.
   *
   * Limit functions then get the value of an identity that is given by its kind.
   */
  readonly areTexts: boolean
  readonly replacement: ReplacementKey<Subject> | undefined
}

/** Key and limit functions written for HTTP report by themselves that there is no request. */
const NO_CONTEXT = undefined as unknown as HttpContext<never>

/** Resolves the arguments of a limiter's methods by its policy. */
export class Subjects<Subject> {
  readonly policy: PolicyChoice<Subject>
  readonly #replacement: ReplacementKey<Subject> | undefined
  readonly #namesIdentity: (subject: unknown) => boolean
  readonly #areTexts: boolean

  constructor(policy: PolicyChoice<Subject>, { namesIdentity, areTexts, replacement }: SubjectsOptions<Subject>) {
    this.policy = policy
    this.#replacement = replacement
    this.#namesIdentity = namesIdentity
    this.#areTexts = areTexts
  }

  /** The same for arguments that are identities by their kinds alone. */
  forIdentities(): Subjects<Subject> {
    const replacement = this.#replacement
    return new Subjects(this.policy, { namesIdentity: () => true, areTexts: this.#areTexts, replacement })
  }

  /** Whether an argument names an identity instead of being a request for key functions. */
  namesIdentity(subject: unknown): boolean {
    return this.#namesIdentity(subject)
  }

  /**
   * The identity that an argument names. Its kind is one of any tier: policies that are data may have others by now.
   *
   * @throws SluiceError `INVALID_KEY`, which lists the kinds
   */
  given(subject: unknown): Given {
    return givenIn(this.policy.where, this.kinds, subject)
  }

  /** The kinds of identities that are counted in any tier. */
  get kinds(): readonly string[] {
    return [...new Set(this.policy.all.flatMap((each) => kindsOf(each, this.#replacement)))]
  }

  /**
   * @param tier the tier, where an identity is given by hand
   * @param priority instead of the policy's own
   * @throws SluiceError `INVALID_KEY`, `INVALID_POLICY`
   */
  resolve(subject: Subject, tier?: string, priority?: number): MaybePromise<Resolved<Subject>> {
    if (this.#namesIdentity(subject)) return this.#resolveGiven(subject, tier, priority)
    return whenKnown(this.policy.of(subject, NO_CONTEXT, tier), (policy) =>
      policy.resolve(subject, NO_CONTEXT, undefined, undefined, priority),
    )
  }

  #resolveGiven(subject: Subject, tier?: string, priority?: number): MaybePromise<Resolved<Subject>> {
    return whenKnown(this.#policyOfIdentity(subject, tier), (policy) => {
      const keys = this.#keysIn(policy, subject)
      const keysOfSubject = ownSubject(subject, keys, this.#areTexts)
      return policy.resolve(
        keysOfSubject,
        NO_CONTEXT,
        keys.identities,
        this.#planOf(policy, keysOfSubject, keys),
        priority,
      )
    })
  }

  /**
   * Resolves a request several times, by the policy in force each time: the tier stays, and the identities where the policy does.
   * The last policy stays where none has taken its place that counts the request.
   */
  resolver(subject: Subject, tier?: string, priority?: number): MaybePromise<() => MaybePromise<Resolved<Subject>>> {
    return whenKnown(this.#policyOf(subject, tier), (first) => {
      const identity = this.#namesIdentity(subject) ? this.given(subject) : undefined
      let policy = first
      let last: readonly string[] | undefined
      return () =>
        whenKnown(this.policy.inPlaceOf(first, subject), (now = policy) => {
          if (now !== policy && (!identity || keysOf(now, this.#replacement, identity))) {
            policy = now
            last = undefined
          }
          const by = policy
          const keys = identity && this.#keysIn(by, subject, identity)
          return whenKnown(last ?? keys?.identities ?? by.identitiesOf(subject, NO_CONTEXT), (identities) => {
            if (by === policy) last = identities
            if (!keys) return by.resolve(subject, NO_CONTEXT, identities, undefined, priority)
            const keysOfSubject = ownSubject(subject, keys, this.#areTexts)
            return by.resolve(keysOfSubject, NO_CONTEXT, identities, this.#planOf(by, keysOfSubject, keys), priority)
          })
        })
    })
  }

  /** The argument in each tier that it may be counted in: a text or an identity by its kind names no tier. */
  resolveAll(subject: Subject): MaybePromise<readonly ResolvedInTier[]> {
    if (this.#namesIdentity(subject)) {
      return allOf(
        this.#keysInAll(subject).map(({ policy, keys }) =>
          inTier(policy, this.#planOf(policy, ownSubject(subject, keys, this.#areTexts), keys), keys.identities),
        ),
      )
    }
    const inOwn = (policy: Policy<Subject>) =>
      inTier(policy, policy.plan(subject, NO_CONTEXT), policy.identitiesOf(subject, NO_CONTEXT))
    if (typeof subject === 'string') return allOf(this.policy.all.map(inOwn))
    return whenKnown(this.policy.of(subject, NO_CONTEXT), (policy) => allOf([inOwn(policy)]))
  }

  /** Whether a decision by this policy on these identities was one for the argument. */
  isCountedOn(subject: Subject, policy: Policy<never>, identities: readonly string[]): MaybePromise<boolean> {
    if (this.#namesIdentity(subject)) {
      const givenIdentities = givenIn(policy.where, kindsOf(policy, this.#replacement), subject)
      const keys = keysOf(policy, this.#replacement, givenIdentities)
      return keys?.identities.every((identity) => identities.includes(identity)) ?? false
    }
    return whenKnown(policy.identitiesOf(subject as never, NO_CONTEXT), (own) =>
      own.every((identity, i) => identity === identities[i]),
    )
  }

  /** The identities to block for a given one. Where addresses are grouped in several ways, the smallest group. */
  toBlock(identity: KeyValue | IdentityByKind): readonly string[] {
    const range = this.rangeIn(identity)
    if (range !== undefined) return [range]
    return [...new Set(this.#keysInAll(identity).map(({ keys }) => keys.finest))]
  }

  /** The network that an identity given by hand denotes. Undefined if it is none. */
  rangeIn(identity: KeyValue | IdentityByKind): string | undefined {
    const { kind, value } = this.given(identity)
    const network = kind === 'ip' && typeof value === 'string' ? networkText(value.trim()) : undefined
    return network === undefined ? undefined : startOf(kind) + network
  }

  /** The identities to strike for a given one, with the policy of each tier and the kind in it. */
  toStrike(identity: KeyValue | IdentityByKind): { policy: Policy<Subject>; kind: string; text: string }[] {
    return this.#keysInAll(identity).map(({ policy, keys: { finest } }) => ({
      policy,
      kind: identityIn(finest).kind,
      text: finest,
    }))
  }

  /** The keys of an identity in one tier. */
  #keysIn(policy: Policy<Subject>, identity: unknown, given = this.given(identity)): GivenKeys {
    const keys = keysOf(policy, this.#replacement, given)
    return keys ?? wrongIdentity(policy.where, kindsOf(policy, this.#replacement), identity)
  }

  /** The same in each tier that has limits of its kind. */
  #keysInAll(identity: unknown): { policy: Policy<Subject>; keys: GivenKeys }[] {
    const identities = this.given(identity)
    return this.policy.all.flatMap((policy) => {
      const keys = keysOf(policy, this.#replacement, identities)
      return keys ? [{ policy, keys }] : []
    })
  }

  #policyOf(subject: Subject, tier: string | undefined): MaybePromise<Policy<Subject>> {
    return this.#namesIdentity(subject)
      ? this.#policyOfIdentity(subject, tier)
      : this.policy.of(subject, NO_CONTEXT, tier)
  }

  #policyOfIdentity(subject: Subject, tier: string | undefined): MaybePromise<Policy<Subject>> {
    const [first, ...others] = this.policy.all
    if (tier === undefined && others.length === 0) return this.policy.of(subject, NO_CONTEXT, first?.tier)
    // An identity does not determine its tier. With tiers, a missing name is an error that lists them.
    return this.policy.of(subject, NO_CONTEXT, String(tier))
  }

  #planOf(policy: Policy<Subject>, own: Subject, keys: GivenKeys): MaybePromise<ReadablePlan> {
    return whenKnown(policy.plan(own, NO_CONTEXT), keys.planOf)
  }
}

interface ResolvedInTier {
  readonly tier: string | undefined
  readonly plan: ReadablePlan
  readonly identities: readonly string[]
}

function inTier<Subject>(
  { tier }: Policy<Subject>,
  plan: MaybePromise<ReadablePlan>,
  identities: MaybePromise<readonly string[]>,
): MaybePromise<ResolvedInTier> {
  if (!(plan instanceof Promise) && !(identities instanceof Promise)) return { tier, plan, identities }
  return Promise.all([plan, identities]).then(([plan, identities]) => ({ tier, plan, identities }))
}

function allOf<T>(parts: readonly MaybePromise<T>[]): MaybePromise<readonly T[]> {
  return parts.some((part) => part instanceof Promise) ? Promise.all(parts) : (parts as readonly T[])
}

/** The argument of limit functions for an identity that is given by hand. */
function ownSubject<Subject>(subject: Subject, { value }: GivenKeys, areTexts: boolean): Subject {
  return areTexts ? (value as Subject) : subject
}
