import calculateSlot from 'cluster-key-slot'
import type { KernelName } from '../../store/cell-kinds.js'
import type { Connection } from '../clients/connection.js'
import { keyStart } from '../scripts/keys.js'
import { probe } from '../scripts/probe.js'

/** How many slots a cluster has. */
const SLOTS = 16_384

export interface ProbingOptions {
  readonly connection: Connection
  readonly prefix: string
  readonly timeoutMs: number
  readonly clock: (() => number) | undefined
  readonly marker: string | undefined
  /** What decisions have had so far. */
  readonly asked: { readonly kinds: ReadonlySet<KernelName>; readonly bans: boolean }
}

/** Tries on Redis what decisions may ask of it. */
export class Probing {
  readonly #options: ProbingOptions

  constructor(options: ProbingOptions) {
    this.#options = options
  }

  at(key: string): Promise<void> {
    const { connection, timeoutMs, clock, marker, asked } = this.#options
    return probe(connection, { key, marker, timeoutMs, asksTime: clock === undefined, ...asked })
  }

  /** Resolves once each master has replied. */
  async everywhere(): Promise<void> {
    await Promise.all(this.#keysOfMasters().map((key) => this.at(key)))
  }

  /** On each master a key that belongs to no identity. */
  #keysOfMasters(): string[] {
    const { connection, prefix } = this.#options
    if (!connection.isCluster) return [probeKey(prefix)]
    const nodes = new Set(Array.from({ length: SLOTS }, (_, slot) => connection.nodeOf(slot)))
    const keys = new Map<string, string>()
    for (let n = 0; keys.size < nodes.size && n < SLOTS; n++) {
      const key = probeKey(prefix, `ready=${n}`)
      keys.set(connection.nodeOf(calculateSlot(key)), key)
    }
    return [...keys.values()]
  }
}

/** A key that belongs to no identity, on the slot of one. */
export function probeKey(prefix: string, identity = ''): string {
  return `${keyStart(prefix, identity)}}:probe`
}
