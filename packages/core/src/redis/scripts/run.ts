import { Deadlines, Timed } from '../../util/deadlines.js'
import { SluiceError } from '../../util/errors.js'
import type { Connection } from '../clients/connection.js'
import type { Encoded } from './encode.js'
import type { LuaScript } from './scripts.generated.js'

/** Of all stores. */
const deadlines = new Deadlines()

/**
 * Runs a script once: waits until the connection is ready, encodes, sends, all within `timeoutMs`.
 * What could not be sent by then is never sent; what was sent and not answered may have run.
 *
 * A connection sends a script whole the first time, and by name from then on. So nothing is sent twice because a script
 * is new to Redis, and nothing that was sent later, of a script that is not, overtakes it.
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
    const send = (isUnknown: boolean) =>
      connection.send(
        keys[0] as string,
        (sent) => {
          if (isUnknown) sent.clear()
          if (!sent.has(script.sha1)) {
            sent.add(script.sha1)
            command[0] = 'EVAL'
            command[1] = script.source
          }
          return command
        },
        isLate,
      )
    try {
      return await send(false)
    } catch (error) {
      // Only NOSCRIPT proves that nothing ran. Replaying a timeout could charge the client twice.
      if (isLate() || !isNoScript(error)) throw error
      return await send(true)
    }
  })
}

/**
 * Runs a script by EVAL and by EVALSHA: a connection needs both, one after the other. Sent together, so that both take
 * no longer than one decision.
 *
 * @throws SluiceError `STORE_UNAVAILABLE`
 */
export async function tryScript(
  connection: Connection,
  timeoutMs: number,
  script: LuaScript,
  { keys, args }: Encoded,
): Promise<void> {
  const rest = [String(keys.length), ...keys, ...args]
  await within(connection, timeoutMs, (isLate) => {
    const send = (...command: string[]) => connection.send(keys[0] as string, () => [...command, ...rest], isLate)
    return Promise.all([send('EVAL', script.source), send('EVALSHA', script.sha1)])
  })
}

/** Deletes keys, each by itself: they may sit on different nodes. */
export function deleteKeys(connection: Connection, timeoutMs: number, keys: readonly string[]): Promise<unknown> {
  return within(connection, timeoutMs, (isLate) =>
    Promise.all(keys.map((key) => connection.send(key, () => ['DEL', key], isLate))),
  )
}

function within(
  connection: Connection,
  timeoutMs: number,
  send: (isLate: () => boolean) => Promise<unknown>,
): Promise<unknown> {
  return new Promise((resolve, reject) => new Attempt(connection, timeoutMs, resolve, reject).start(send))
}

/** Something asked of Redis, until it is answered or its time is up. */
class Attempt extends Timed {
  readonly #connection: Connection
  readonly #timeoutMs: number
  readonly #resolve: (reply: unknown) => void
  readonly #reject: (error: SluiceError) => void
  #isLate = false
  #callOff = () => {}

  constructor(
    connection: Connection,
    timeoutMs: number,
    resolve: (reply: unknown) => void,
    reject: (error: SluiceError) => void,
  ) {
    super(performance.now() + timeoutMs)
    this.#connection = connection
    this.#timeoutMs = timeoutMs
    this.#resolve = resolve
    this.#reject = reject
  }

  start(send: (isLate: () => boolean) => Promise<unknown>): void {
    if (this.#connection.isClosed()) {
      this.#reject(unavailable('the store is closed', undefined))
      return
    }
    deadlines.start(this)
    this.#callOff = this.#connection.whenReady(() => {
      send(() => this.#isLate).then(
        (reply) => {
          deadlines.end(this)
          this.#resolve(reply)
        },
        (error: Error) => {
          deadlines.end(this)
          this.#reject(unavailable(error.message, error))
        },
      )
    })
  }

  late(): void {
    this.#isLate = true
    this.#callOff()
    const last = this.#connection.lastError()
    this.#reject(unavailable(`no answer within ${this.#timeoutMs} ms${because(last)}`, last))
  }
}

function unavailable(why: string, cause: unknown): SluiceError {
  return new SluiceError('STORE_UNAVAILABLE', `redis: ${why}`, { cause })
}

function because(error: Error | undefined): string {
  return error ? `: ${error.message || (error as NodeJS.ErrnoException).code}` : ''
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
