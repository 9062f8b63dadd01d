import type { Connection } from '../clients/connection.js'
import { tryScript } from './run.js'
import type { Kind } from './script.js'
import { probeScript } from './scripts.generated.js'

export interface ProbeOptions {
  /** A key that nothing else uses, on the slot of decisions that failed. */
  readonly key: string
  /** Read by every batch; undefined in a cluster. */
  readonly marker: string | undefined
  readonly timeoutMs: number
  /** Whether decisions go by the clock of Redis. */
  readonly asksTime: boolean
  /** The kinds of cells that decisions have had so far. */
  readonly kinds: ReadonlySet<Kind>
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

/**
 * What scripts of decisions call beside TIME and EXISTS, each command on a key that nothing else uses, by the kinds of
 * cells that they have, and by whether they may ban.
 *
 * SET comes first, since a script that has written is no longer refused for want of memory. The key expires by itself
 * where DEL is refused, and only what DEL will remove is created after that.
 */
export function commandsNeeded(key: string, kinds: ReadonlySet<Kind>, bans = false): string[][] {
  const commands = [
    ['SET', key, '', 'PX', '1'],
    ['DEL', key],
    ['GET', key],
    ['SETRANGE', key, '0', ''],
  ]
  if (bans) commands.push(['PTTL', key])
  if (kinds.has('log')) commands.push(['GETRANGE', key, '0', '0'])
  if (kinds.has('log') || kinds.has('concurrency')) commands.push(['PEXPIRE', key, '1'])
  if (kinds.has('concurrency')) {
    commands.push(
      ['ZCOUNT', key, '0', '0'],
      ['ZCARD', key],
      ['ZSCORE', key, 'a'],
      ['ZRANGE', key, '0', '0'],
      ['ZRANGEBYSCORE', key, '0', '0'],
      ['ZREMRANGEBYSCORE', key, '0', '0'],
      ['ZREM', key, 'a'],
      ['ZADD', key, '0', 'a'],
      ['DEL', key],
    )
  }
  return commands
}
