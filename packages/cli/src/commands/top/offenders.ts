import type { Offender, RedisStore } from '@sluice/core'
import type { PolicyFigures } from './figures.js'
import type { Period } from './watch.js'

export interface OffendersOfPolicy {
  readonly policy: string
  readonly offenders: readonly Offender[]
}

/** Policies, and identities of each, that are shown. */
const MAX_POLICIES = 3
const MAX_OFFENDERS = 5
/** The interval of queries to Redis, in ms: each reads the counts of all processes. */
const EVERY_MS = 5000

/** The identities that the policies with the most refusals refuse most, from Redis. */
export class Offenders {
  readonly #store: RedisStore
  #shown: readonly OffendersOfPolicy[] = []
  #askedMs = Number.NEGATIVE_INFINITY

  constructor(store: RedisStore) {
    this.#store = store
  }

  /** The offenders of this period; the last known ones between two queries, or where Redis is away. */
  async of({ policies }: Period): Promise<readonly OffendersOfPolicy[]> {
    const now = performance.now()
    if (now - this.#askedMs < EVERY_MS) return this.#shown
    const refusing = policies.filter(({ refused }) => refused > 0).sort((a, b) => b.refused - a.refused)
    if (refusing.length === 0) return this.#shown
    this.#askedMs = now
    try {
      this.#shown = await Promise.all(refusing.slice(0, MAX_POLICIES).map((each) => this.#ask(each)))
    } catch {
      // The rest of the screen remains useful, and shows the state of the store as the servers report it.
    }
    return this.#shown
  }

  async #ask(figures: PolicyFigures): Promise<OffendersOfPolicy> {
    for (const policy of namesOf(figures)) {
      const { offenders } = await this.#store.offenders({ policy, top: MAX_OFFENDERS, in: '10m' })
      if (offenders.length > 0) return { policy, offenders }
    }
    return { policy: figures.policy, offenders: [] }
  }
}

/**
 * The possible names of the policy that refuses. Where policies are a document's, metrics name the middleware, and the name of
 * a limit begins with that of its policy.
 */
function namesOf({ policy, limit }: PolicyFigures): string[] {
  const parts = limit.split('-')
  return [policy, ...parts.map((_, i) => parts.slice(0, parts.length - i).join('-'))].filter((name) => name !== '')
}
