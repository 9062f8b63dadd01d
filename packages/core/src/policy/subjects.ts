import type { HttpContext } from '../request/context.js'
import { type IdentityByKind, identityIn, type KeyValue } from '../store/identity.js'
import { GivenIdentities, type ReplacementKey } from './given-identities.js'
import type { GivenKeys } from './kinds.js'
import type { ReadablePlan } from './plan.js'
import type { Policy, PolicyChoice, Resolved } from './policy.js'

export interface SubjectsOptions<Subject> {
  /** Whether a subject names an identity, as text or by its kind, instead of being what key functions take. */
  readonly namesIdentity: (subject: unknown) => boolean
  /** Whether subjects are keys as text. Limit functions then get the value of an identity that is given by its kind. */
  readonly areTexts?: boolean
  readonly replacement?: ReplacementKey<Subject> | undefined
}

/** Key and limit functions written for HTTP report by themselves that there is no request. */
const NO_CONTEXT = undefined as unknown as HttpContext<never>

/** Resolves what the methods of a limiter are called with, by its policy. */
export class Subjects<Subject> {
  readonly policy: PolicyChoice<Subject>
  readonly #given: GivenIdentities
  readonly #namesIdentity: (subject: unknown) => boolean
  readonly #areTexts: boolean

  constructor(
    policy: PolicyChoice<Subject>,
    { namesIdentity, areTexts = false, replacement }: SubjectsOptions<Subject>,
  ) {
    this.policy = policy
    this.#given = new GivenIdentities(policy, replacement)
    this.#namesIdentity = namesIdentity
    this.#areTexts = areTexts
  }

  /** Whether a subject names an identity instead of being what key functions take. */
  namesIdentity(subject: unknown): boolean {
    return this.#namesIdentity(subject)
  }

  /**
   * @param tier the tier, where an identity is given by hand
   * @param priority instead of the policy's own
   * @throws SluiceError `INVALID_KEY`, `INVALID_POLICY`
   */
  resolve(subject: Subject, tier?: string, priority?: number): Resolved<Subject> {
    if (!this.#namesIdentity(subject)) {
      return this.policy.of(subject, NO_CONTEXT, tier).resolve(subject, NO_CONTEXT, undefined, undefined, priority)
    }
    const policy = this.#policyOfIdentity(subject, tier)
    const keys = this.#given.keysIn(policy, subject)
    const own = ownSubject(subject, keys, this.#areTexts)
    return policy.resolve(own, NO_CONTEXT, keys.identities, this.#planOf(policy, own, keys), priority)
  }

  /** Resolves a subject several times: functions for limits and priority are called each time, tier and identities stay. */
  resolver(subject: Subject): () => Resolved<Subject> {
    if (!this.#namesIdentity(subject)) {
      const policy = this.policy.of(subject, NO_CONTEXT)
      const identities = policy.identitiesOf(subject, NO_CONTEXT)
      return () => policy.resolve(subject, NO_CONTEXT, identities)
    }
    const policy = this.#policyOfIdentity(subject, undefined)
    const keys = this.#given.keysIn(policy, subject)
    const own = ownSubject(subject, keys, this.#areTexts)
    const plan = this.#planOf(policy, own, keys)
    return () => policy.resolve(own, NO_CONTEXT, keys.identities, plan)
  }

  /** A subject in each tier that it may be counted in: a text or an identity by its kind names none. */
  resolveAll(subject: Subject): { tier: string | undefined; plan: ReadablePlan; identities: readonly string[] }[] {
    if (this.#namesIdentity(subject)) {
      return this.#given.keysInAll(this.policy.all, subject).map(({ policy, keys }) => {
        const plan = this.#planOf(policy, ownSubject(subject, keys, this.#areTexts), keys)
        return { tier: policy.tier, plan, identities: keys.identities }
      })
    }
    const policies = typeof subject === 'string' ? this.policy.all : [this.policy.of(subject, NO_CONTEXT)]
    return policies.map((policy) => ({
      tier: policy.tier,
      plan: policy.plan(subject, NO_CONTEXT),
      identities: policy.identitiesOf(subject, NO_CONTEXT),
    }))
  }

  /** Whether a decision in this tier on these identities was one for the subject. */
  isCountedOn(subject: Subject, tier: string | undefined, identities: readonly string[]): boolean {
    if (this.#namesIdentity(subject)) {
      const given = this.#given.keysIn(this.#policyOfIdentity(subject, tier), subject)
      return given.identities.every((identity) => identities.includes(identity))
    }
    const own = this.policy.of(subject, NO_CONTEXT, tier).identitiesOf(subject, NO_CONTEXT)
    return own.every((identity, i) => identity === identities[i])
  }

  /** The identities to block for one that is given: where addresses are grouped in several ways, the smallest group. */
  toBlock(identity: KeyValue | IdentityByKind): readonly string[] {
    return [...new Set(this.#given.keysInAll(this.policy.all, identity).map(({ keys }) => keys.finest))]
  }

  /** The identities to strike for one that is given, with the policy of each tier and its kind there. */
  toStrike(identity: KeyValue | IdentityByKind): { policy: Policy<Subject>; kind: string; text: string }[] {
    return this.#given
      .keysInAll(this.policy.all, identity)
      .map(({ policy, keys: { finest } }) => ({ policy, kind: identityIn(finest).kind, text: finest }))
  }

  #policyOfIdentity(subject: Subject, tier: string | undefined): Policy<Subject> {
    // An identity cannot be asked for its tier. With tiers, a missing name is an error that lists them.
    return this.policy.of(subject, NO_CONTEXT, this.policy.all.length > 1 ? String(tier) : tier)
  }

  #planOf(policy: Policy<Subject>, own: Subject, keys: GivenKeys): ReadablePlan {
    return keys.planOf(policy.plan(own, NO_CONTEXT))
  }
}

/** What limit functions get for an identity that is given by hand. */
function ownSubject<Subject>(subject: Subject, { value }: GivenKeys, areTexts: boolean): Subject {
  return areTexts ? (value as Subject) : subject
}
