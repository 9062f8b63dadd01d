import calculateSlot from 'cluster-key-slot'
import type { KernelName } from '../../store/cell-kinds.js'
import { keyStart } from '../scripts/keys.js'
import { type Server, tryScript } from '../scripts/run.js'
import { KIND_CALLS, probeScript } from '../scripts/scripts.generated.js'

/** How many slots a cluster has. */
const SLOTS = 16_384

export interface ProbingOptions extends Server {
  readonly marker: string | undefined
  /** What decisions have had so far. */
  readonly asked: { readonly kinds: ReadonlySet<KernelName>; readonly bans: boolean }
}

/**
 * Resolves if Redis accepts everything that decisions may ask of it: EVAL and EVALSHA, every command that their scripts
 * call (`test/redis/acl.test.ts` compares the list with `lua/`), the keys, and writing. A probe that tried less would
 * report a Redis that is full, read-only or forbids a command as available, again and again. Leaves no key behind.
 *
 * @param key one that nothing else uses, on the slot of decisions that failed
 */
export function probe({ connection, timeoutMs, clock, marker, asked }: ProbingOptions, key: string): Promise<void> {
  const keys = marker === undefined ? [key] : [key, marker]
  const commands = [
    ...(clock ? [] : [['TIME']]),
    ['EXISTS', ...keys],
    ...commandsNeeded(key, asked.kinds, asked.bans && marker !== undefined),
  ]
  const args = commands.map((command) => JSON.stringify(command))
  return tryScript(connection, timeoutMs, probeScript, { keys, args })
}

/** Resolves once each master has replied. */
export async function probeMasters(options: ProbingOptions): Promise<void> {
  await Promise.all(keysOfMasters(options).map((key) => probe(options, key)))
}

/** On each master a key that belongs to no identity. */
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

/** A key that belongs to no identity, on the slot of one. */
export function probeKey(prefix: string, identity = ''): string {
  return `${keyStart(prefix, identity)}}:probe`
}

const CALLS: Readonly<Record<KernelName, readonly (readonly [string, ...string[]])[]>> = KIND_CALLS

/**
 * What scripts of decisions call beside TIME and EXISTS, each command on a key that nothing else uses, by the kinds of
 * cells that they have, and by whether they may ban.
 *
 * SET comes first, since a script that has written is no longer refused for want of memory. The key expires by itself
 * where DEL is refused, and only what DEL will remove is created after that. What a kind calls beside is declared in lua/cells.
 */
export function commandsNeeded(key: string, kinds: ReadonlySet<KernelName>, bans = false): string[][] {
  const commands = [
    ['SET', key, '', 'PX', '1'],
    ['DEL', key],
    ['GET', key],
    ['SETRANGE', key, '0', ''],
  ]
  if (bans) commands.push(['PTTL', key])
  for (const kind of kinds) for (const [name, ...words] of CALLS[kind]) commands.push([name, key, ...words])
  return commands
}
