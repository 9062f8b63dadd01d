import calculateSlot from 'cluster-key-slot'
import type { KernelName } from '../../store/algorithms.js'
import { commandsNeeded } from '../scripts/commands-needed.js'
import { keyStart } from '../scripts/keys.js'
import { type Server, tryScript } from '../scripts/run.js'
import { probeScript } from '../scripts/scripts.generated.js'

/** Number of slots of a cluster. */
const SLOTS = 16_384

export interface ProbingOptions extends Server {
  readonly marker: string | undefined
  /** The features of scripts that decisions have used so far. */
  readonly used: { readonly kinds: ReadonlySet<KernelName>; readonly bans: boolean }
}

/**
 * Resolves if Redis accepts everything that decisions need: EVAL and EVALSHA, every command of their scripts, the keys,
 * and writing. `test/redis/acl.test.ts` compares the list of commands with `lua/`. A probe that tried less would
 * repeatedly report a Redis as available that is full, read-only or forbids a command. Leaves no key behind.
 *
 * @param key a key that nothing else uses, on the slot of the failed decisions
 */
export function probe({ connection, timeoutMs, clock, marker, used }: ProbingOptions, key: string): Promise<void> {
  const keys = marker === undefined ? [key] : [key, marker]
  const commands = [
    ...(clock ? [] : [['TIME']]),
    ['EXISTS', ...keys],
    ...commandsNeeded(key, used.kinds, used.bans && marker !== undefined),
  ]
  const args = commands.map((command) => JSON.stringify(command))
  return tryScript(connection, timeoutMs, probeScript, { keys, args })
}

/** Resolves once each master has replied. */
export async function probeMasters(options: ProbingOptions): Promise<void> {
  await Promise.all(keysOfMasters(options).map((key) => probe(options, key)))
}

/** A key on each master that belongs to no identity. */
function keysOfMasters({ connection, prefix }: ProbingOptions): string[] {
  if (!connection.isCluster) return [probeKey(prefix)]
  const nodes = new Set(Array.from({ length: SLOTS }, (_, slot) => connection.nodeOf(slot)))
  const keys = new Map<string, string>()
  for (let n = 0; keys.size < nodes.size && n < SLOTS; n++) {
    const key = probeKey(prefix, `ready=${n}`)
    keys.set(connection.nodeOf(calculateSlot(key)), key)
  }
  return [...keys.values()]
}

/** A key on the slot of an identity, but not part of its data. */
export function probeKey(prefix: string, identity = ''): string {
  return `${keyStart(prefix, identity)}}:probe`
}
