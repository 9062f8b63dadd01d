import type { Connection } from '../clients/connection.js'
import { unreadable } from './reply-reader.js'
import { run } from './run.js'
import { forgetScript, keptScript } from './scripts.generated.js'

// Both walk through all keys of a server, in a cluster of the master that has a key which begins like `start`.

/** What follows `start` in the names of the keys that begin with it; a name may come twice. */
export async function restsOfKeys(connection: Connection, timeoutMs: number, start: string): Promise<string[]> {
  const rests: string[] = []
  let cursor = '0'
  do {
    const reply = await run(connection, timeoutMs, keptScript, () => ({
      keys: [start],
      args: [cursor, patternOf(start)],
    }))
    if (!Array.isArray(reply) || !Array.isArray(reply[1])) throw unreadable('expected a cursor and keys')
    for (const key of reply[1]) rests.push(String(key).slice(start.length))
    cursor = String(reply[0])
  } while (cursor !== '0')
  return rests
}

/** Deletes the keys that begin with `start`; with a `member`, only what they hold of that. */
export async function forgetKeys(
  connection: Connection,
  timeoutMs: number,
  start: string,
  member: string,
): Promise<void> {
  let cursor = '0'
  do {
    const reply = await run(connection, timeoutMs, forgetScript, () => ({
      keys: [start],
      args: [cursor, patternOf(start), member],
    }))
    if (!(reply instanceof Uint8Array)) throw unreadable('expected a cursor')
    cursor = reply.toString()
  } while (cursor !== '0')
}

/** Of all keys that begin like this. */
function patternOf(start: string): string {
  return `${start.replace(/[\\*?[\]]/g, '\\$&')}*`
}
