import type { Limit } from '../../policy/limits/limit.js'
import { Policy, type PolicyChoice } from '../../policy/policy.js'
import type { HttpContext } from '../../request/context.js'
import { SluiceError, show } from '../../util/errors.js'
import { byIp } from '../identity/ip.js'
import type { PolicySource } from './policy-source.js'

/** Policies that are data, as methods of a limiter see them: a policy where another limiter has a tier. */
export class PoliciesByHand<Request> implements PolicyChoice<Request> {
  readonly name: string
  readonly where: string
  readonly ban = undefined
  readonly #source: PolicySource<Request>
  #of: PolicySource<Request>['byName'] | undefined
  #byName: ReadonlyMap<string, Policy<Request>> = new Map()

  constructor(where: string, name: string, source: PolicySource<Request>) {
    this.where = where
    this.name = name
    this.#source = source
  }

  get all(): readonly Policy<Request>[] {
    return [...this.#policies.values()]
  }

  get limits(): readonly Limit<Request>[] {
    return this.all.flatMap(({ limits }) => limits)
  }

  /** @throws SluiceError `INVALID_KEY` without the name of a policy */
  of(_subject: Request, _context: HttpContext<Request>, named?: string): Policy<Request> {
    const policy = this.#policies.get(String(named))
    if (policy) return policy
    const known = [...this.#policies.keys()].map(show).join(' or ')
    throw new SluiceError(
      'INVALID_KEY',
      `${this.where}: tier: expected the name of a policy, ${known}, got ${show(named)}`,
    )
  }

  /** Made anew once there are others. */
  get #policies(): ReadonlyMap<string, Policy<Request>> {
    const { byName } = this.#source
    if (byName !== this.#of) {
      this.#byName = new Map(
        [...byName].map(([name, { options }]) => {
          const { limits, ban, sharedTurns, key = byIp<Request>() } = options
          return [name, new Policy<Request>({ name: this.name, key, limits, ban, sharedTurns })]
        }),
      )
      this.#of = byName
    }
    return this.#byName
  }
}
