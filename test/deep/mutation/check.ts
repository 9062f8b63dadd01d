import type { Store } from '@sluice/core'
import type { Stage } from './replay.js'

export interface Venue extends Stage {
  /** A store on the same Redis that reads the clock of Redis. */
  readonly timed: Store
}

/** A check that a wrong script can fail: fast and deterministic. */
export interface Check {
  readonly name: string
  /** Resolves to the failure, if any, or throws it. */
  run(venue: Venue): Promise<string | undefined>
}

/** The longest time in ms between an execution and the reading of a key's remaining life. */
export const PASSED_MS = 5000

/** The failure, if these differ. */
export function different(what: string, found: unknown, expected: unknown): string | undefined {
  const [text, wanted] = [JSON.stringify(found), JSON.stringify(expected)]
  return text === wanted ? undefined : `${what}: ${text} instead of ${wanted}`
}

/** The names and values of a reply that has them in turns, as sorted texts `name=value`. */
export function pairsOf(reply: readonly string[]): string[] {
  return reply.flatMap((name, i) => (i % 2 === 0 ? [`${name}=${reply[i + 1]}`] : [])).sort()
}
