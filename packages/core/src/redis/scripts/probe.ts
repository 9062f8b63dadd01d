import type { KernelName } from '../../store/cell-kinds.js'
import type { Connection } from '../clients/connection.js'
import { tryScript } from './run.js'
import { KIND_CALLS, probeScript } from './scripts.generated.js'

export interface ProbeOptions {
  /** A key that nothing else uses, on the slot of decisions that failed. */
  readonly key: string
  /** Read by every batch; undefined in a cluster. */
  readonly marker: string | undefined
  readonly timeoutMs: number
  /** Whether decisions go by the clock of Redis. */
  readonly asksTime: boolean
  /** The kinds of cells that decisions have had so far. */
  readonly kinds: ReadonlySet<KernelName>
  /** Whether decisions may ban. */
  readonly bans: boolean
}

/**
 * Resolves if Redis accepts everything that decisions may ask of it: EVAL and EVALSHA, every command that their scripts
 * call (`test/redis/acl.test.ts` compares the list with `lua/`), the keys, and writing. A probe that tried less would
 * report a Redis that is full, read-only or forbids a command as available, again and again. Leaves no key behind.
 */
export function probe(
  connection: Connection,
  { key, marker, timeoutMs, asksTime, kinds, bans }: ProbeOptions,
): Promise<void> {
  const keys = marker === undefined ? [key] : [key, marker]
  const commands = [
    ...(asksTime ? [['TIME']] : []),
    ['EXISTS', ...keys],
    ...commandsNeeded(key, kinds, bans && marker !== undefined),
  ]
  return tryScript(connection, timeoutMs, probeScript, {
    keys,
    args: commands.map((command) => JSON.stringify(command)),
  })
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
