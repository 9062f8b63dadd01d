import type { DecisionEvent } from '@sluice/core'
import {
  addressText,
  CONSOLE_LIMITER,
  decidingPolicies,
  decisionIn,
  identitiesIn,
  ipAddress,
  textValue,
  unnamedPath,
} from '@sluice/core/internal'

/** Begins the reason of a refusal that is only reported. */
const REPORTED = 'reported:'

/** Takes every decision of this process, and keeps something of it for consoles. */
export interface Sink {
  note(event: DecisionEvent): void
  /** Each second. It may reject: then the store is away. */
  tick(): Promise<void>
  /** Writes what is new, where that waits for a later second. */
  write?(): Promise<void>
}

/** Whether a decision is traffic: those on the console's own requests are not, and bytes of a response are of a request before. */
export function isTraffic({ policy, source }: DecisionEvent): boolean {
  return policy !== CONSOLE_LIMITER && source !== 'response'
}

/** `admitted`, `left`, the reason of a refusal, or `reported:` and the reason of one that is only reported. */
export function reasonOf({ allowed, outcome, reported }: DecisionEvent): string {
  return reported && !allowed && outcome !== 'left' ? REPORTED + outcome : outcome
}

/** In a filter: every reason of a refusal that was enforced. */
export const REFUSED = 'refused'

/** Whether a reason is that of a refusal that was enforced. */
export function isRefusal(reason: string): boolean {
  return reason !== 'admitted' && reason !== 'left' && !reason.startsWith(REPORTED)
}

/** The policies that decided: those of a document by their own names. Of a refusal, those that refuse. */
export function policiesOf({ verdict }: DecisionEvent): readonly string[] {
  return decidingPolicies(decisionIn(verdict))
}

export function clientsOf({ verdict }: DecisionEvent): readonly string[] {
  return identitiesIn(decisionIn(verdict))
}

/** The network of an address: /24 of IPv4, /48 of IPv6. Undefined for another client. */
export function networkOf(client: string): string | undefined {
  const { kind, value } = textValue(client)
  if (kind !== 'ip') return undefined
  const address = ipAddress(value.split('/', 1)[0] as string)
  if (!address) return undefined
  const [first = 0, second = 0] = address.first
  return address.isIPv4
    ? `${addressText([first & 0xffffff00])}/24`
    : `${addressText([first, second & 0xffff0000, 0, 0])}/48`
}

/** Characters of a path that are looked at. */
export const LOOKED_AT = 512
/** Paths whose form is remembered. */
const MAX_PATHS = 1024

/** Paths without ids, tokens and names. That takes microseconds, so those of late are remembered. */
export class Paths {
  readonly #known = new Map<string, string>()

  of(path: string): string {
    const known = this.#known.get(path)
    if (known !== undefined) return known
    if (this.#known.size >= MAX_PATHS) this.#known.clear()
    const unnamed = unnamedPath(path)
    this.#known.set(path, unnamed)
    return unnamed
  }
}
