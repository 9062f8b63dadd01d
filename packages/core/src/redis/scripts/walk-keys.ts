import type { Connection } from '../clients/connection.js'
import { unreadable } from './reply-reader.js'
import { run } from './run.js'
import { forgetScript, keptScript, type LuaScript } from './scripts.generated.js'

// Both functions scan all keys of a server; in a cluster, of the master with the slot of `start`.

/** The remainders of key names that begin with `start`. A name may occur twice. */
export async function restsOfKeys(connection: Connection, timeoutMs: number, start: string): Promise<string[]> {
  return (await keysLike(connection, timeoutMs, start)).map((key) => key.slice(start.length))
}

/** Scans of a search that ends early: of a Redis with other keys, few of them are ours. */
const MAX_SCANS = 100

/**
 * The key names that begin with `start`. A name may occur twice.
 *
 * @param max ends once there are as many, or after a hundred scans. All keys without it
 */
export async function keysLike(
  connection: Connection,
  timeoutMs: number,
  start: string,
  max = Number.POSITIVE_INFINITY,
): Promise<string[]> {
  const keys: string[] = []
  let scans = 0
  await walk(connection, timeoutMs, keptScript, start, [], (reply) => {
    if (!Array.isArray(reply) || !Array.isArray(reply[1])) throw unreadable('expected a cursor and keys')
    for (const key of reply[1]) keys.push(String(key))
    const isEnough = keys.length >= max || (max < Number.POSITIVE_INFINITY && ++scans >= MAX_SCANS)
    return isEnough ? END : reply[0]
  })
  return keys
}

const END = Buffer.from('0')

/** Deletes the keys that begin with `start`; with a `member`, only that member of these keys. */
export function forgetKeys(connection: Connection, timeoutMs: number, start: string, member: string): Promise<void> {
  return walk(connection, timeoutMs, forgetScript, start, [member], (reply) => reply)
}

/** `cursorIn` returns the cursor in a reply. */
async function walk(
  connection: Connection,
  timeoutMs: number,
  script: LuaScript,
  start: string,
  more: readonly string[],
  cursorIn: (reply: unknown) => unknown,
): Promise<void> {
  const pattern = `${start.replace(/[\\*?[\]]/g, '\\$&')}*`
  let cursor = '0'
  do {
    const args = [cursor, pattern, ...more]
    const ended = cursorIn(await run(connection, timeoutMs, script, () => ({ keys: [start], args })))
    if (!(ended instanceof Uint8Array)) throw unreadable('expected a cursor')
    cursor = ended.toString()
  } while (cursor !== '0')
}
