import { SluiceError } from '../errors.js'
import type { Connection } from './connection.js'
import type { Encoded } from './encode.js'
import type { LuaScript } from './scripts.generated.js'

/**
 * Runs a script once: waits until the connection is ready, encodes, sends, all within `timeoutMs`.
 * What could not be sent by then is never sent; what was sent and not answered may have run.
 *
 * @throws SluiceError `STORE_UNAVAILABLE`
 */
export function run(
  connection: Connection,
  timeoutMs: number,
  script: LuaScript,
  encode: () => Encoded,
): Promise<unknown> {
  return within(connection, timeoutMs, async (isLate) => {
    const { keys, args } = encode()
    const command = ['EVALSHA', script.sha1, String(keys.length), ...keys, ...args]
    try {
      return await connection.send(keys[0] as string, command, isLate)
    } catch (error) {
      // Only NOSCRIPT proves that nothing ran. Replaying a timeout could charge the client twice.
      if (isLate() || !isNoScript(error)) throw error
      command[0] = 'EVAL'
      command[1] = script.source
      return await connection.send(keys[0] as string, command, isLate)
    }
  })
}

/** Deletes keys, each by itself: they may sit on different nodes. */
export function deleteKeys(connection: Connection, timeoutMs: number, keys: readonly string[]): Promise<unknown> {
  return within(connection, timeoutMs, (isLate) =>
    Promise.all(keys.map((key) => connection.send(key, ['DEL', key], isLate))),
  )
}

function within(
  connection: Connection,
  timeoutMs: number,
  send: (isLate: () => boolean) => Promise<unknown>,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    let isLate = false
    const fail = (why: string, cause: unknown) => {
      reject(new SluiceError('STORE_UNAVAILABLE', `redis: ${why}`, { cause }))
    }
    if (connection.isClosed()) {
      fail('the store is closed', undefined)
      return
    }
    const late = () => {
      isLate = true
      callOff()
      fail(`no answer within ${timeoutMs} ms${because(connection.lastError())}`, connection.lastError())
    }
    // After a blocked event loop timers run before sockets are read: the answer may be here already.
    const timer = setTimeout(() => setImmediate(late), timeoutMs)
    const callOff = connection.whenReady(() => {
      send(() => isLate)
        .then(resolve, (error: Error) => fail(error.message, error))
        .finally(() => clearTimeout(timer))
    })
  })
}

function because(error: Error | undefined): string {
  return error ? `: ${error.message || (error as NodeJS.ErrnoException).code}` : ''
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
