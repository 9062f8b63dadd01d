import { Deadlines, Timed } from '../../util/deadlines.js'
import { SluiceError } from '../../util/errors.js'
import type { Connection, Wait } from '../clients/connection.js'
import type { Encoded } from './encode.js'
import type { LuaScript } from './scripts.generated.js'

/** Of all stores. */
const deadlines = new Deadlines()

/** How many times `timeoutMs` a reply may take while others keep coming. */
const SLOWEST = 10

/** What scripts are sent to, and whose clock they go by. */
export interface Server {
  readonly connection: Connection
  /** What every key begins with. */
  readonly prefix: string
  readonly timeoutMs: number
  /** In place of that of Redis. */
  readonly clock: (() => number) | undefined
}

/** When a server was last heard, by the performance clock. */
export interface Pulse {
  lastReplyAt: number
}

export interface RunOptions {
  /** The master of a cluster to send to; otherwise it is that of the first key. */
  readonly node?: string | undefined
  /** Of the server that answers: one that keeps answering others is slow, and not away. */
  readonly pulse?: Pulse | undefined
  /** Called when it is sent. */
  readonly onSent?: () => void
}

/**
 * Runs a script once: waits until the connection is ready, encodes and sends. What could not be sent within `timeoutMs`, or
 * for a first connection until that should be there, is never sent; what was not answered `timeoutMs` later may have run.
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
  { node, pulse, onSent }: RunOptions = {},
): Promise<unknown> {
  return within({ connection, timeoutMs, pulse }, async (attempt) => {
    const { keys, args } = encode()
    const command = ['EVALSHA', script.sha1, String(keys.length), ...keys, ...args]
    const send = (isUnknown: boolean) => {
      const parts = (sent: Set<string>) => {
        attempt.sent()
        if (isUnknown) sent.clear()
        else onSent?.()
        if (!sent.has(script.sha1)) {
          sent.add(script.sha1)
          command[0] = 'EVAL'
          command[1] = script.source
        }
        return command
      }
      if (node === undefined) return connection.send(keys[0] as string, parts, attempt)
      // It can be sent at once, or not at all.
      return (connection.sendTo as NonNullable<Connection['sendTo']>)(node, parts)
    }
    try {
      return await send(false)
    } catch (error) {
      // Only NOSCRIPT proves that nothing ran. Replaying a timeout could charge the client twice.
      if (attempt.isLate() || !isNoScript(error)) throw error
      return await send(true)
    }
  })
}

/** Runs a script whose first argument is the time: '' for that of Redis. */
export function runAt(
  { connection, timeoutMs, clock }: Server,
  script: LuaScript,
  keys: string[],
  args: readonly string[],
): Promise<unknown> {
  return run(connection, timeoutMs, script, () => ({ keys, args: [clock ? String(clock()) : '', ...args] }))
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
  await within({ connection, timeoutMs }, (attempt) => {
    const send = (...command: string[]) => connection.send(keys[0] as string, () => [...command, ...rest], attempt)
    return Promise.all([send('EVAL', script.source), send('EVALSHA', script.sha1)])
  })
}

/** Deletes keys, each by itself: they may sit on different nodes. */
export function deleteKeys(connection: Connection, timeoutMs: number, keys: readonly string[]): Promise<unknown> {
  return within({ connection, timeoutMs }, (attempt) =>
    Promise.all(keys.map((key) => connection.send(key, () => ['DEL', key], attempt))),
  )
}

/** Reads keys, each by itself. */
export async function readKeys(
  connection: Connection,
  timeoutMs: number,
  keys: readonly string[],
): Promise<(Uint8Array | undefined)[]> {
  const values = await within({ connection, timeoutMs }, (attempt) =>
    Promise.all(keys.map((key) => connection.send(key, () => ['GET', key], attempt))),
  )
  return (values as unknown[]).map((value) => (value instanceof Uint8Array ? value : undefined))
}

/** Reads fields of hashes, each by itself, as texts. */
export async function readFields(
  connection: Connection,
  timeoutMs: number,
  fields: readonly (readonly [key: string, field: string])[],
): Promise<(string | undefined)[]> {
  const values = await within({ connection, timeoutMs }, (attempt) =>
    Promise.all(fields.map(([key, field]) => connection.send(key, () => ['HMGET', key, field], attempt))),
  )
  return (values as unknown[]).map((value) =>
    Array.isArray(value) && value[0] instanceof Uint8Array ? value[0].toString() : undefined,
  )
}

/** Resolves when there is a connection; rejects where there is none by the time that the first should be there. */
export async function whenConnected(connection: Connection): Promise<void> {
  await within({ connection, timeoutMs: 1 }, () => Promise.resolve())
}

interface Terms {
  readonly connection: Connection
  readonly timeoutMs: number
  readonly pulse?: Pulse | undefined
}

function within(terms: Terms, send: (attempt: Attempt) => Promise<unknown>): Promise<unknown> {
  return new Promise((resolve, reject) => new Attempt(terms, resolve, reject).start(send))
}

/** Something asked of Redis, until it is answered or its time is up. */
class Attempt extends Timed implements Wait {
  readonly #terms: Terms
  readonly #resolve: (reply: unknown) => void
  readonly #reject: (error: SluiceError) => void
  /** By the performance clock; 0 while it is not sent. */
  #sentAt = 0
  #late = false
  #callOff = () => {}

  constructor(terms: Terms, resolve: (reply: unknown) => void, reject: (error: SluiceError) => void) {
    const { connection, timeoutMs } = terms
    // The first connection is waited for, once: processes that start together must not each count alone.
    super(Math.max(performance.now() + timeoutMs, connection.startsUntil()))
    this.#terms = terms
    this.#resolve = resolve
    this.#reject = reject
  }

  start(send: (attempt: Attempt) => Promise<unknown>): void {
    const { connection, pulse } = this.#terms
    if (connection.isClosed()) {
      this.#reject(unavailable('the store is closed', undefined))
      return
    }
    deadlines.start(this)
    const isReady = () => {
      send(this).then(
        (reply) => {
          deadlines.end(this)
          if (pulse) pulse.lastReplyAt = performance.now()
          this.#resolve(reply)
        },
        (error: Error) => this.#fail(error.message, error),
      )
    }
    this.#callOff = connection.whenReady(isReady, (error) => this.#fail(`not connected${because(error)}`, error))
  }

  isLate(): boolean {
    return this.#late
  }

  connects(): void {
    this.#dueIn(Math.max(this.#terms.timeoutMs, this.#terms.connection.connectTimeoutMs))
  }

  /** Its time counts from now on. */
  sent(): void {
    if (this.#sentAt > 0) return
    const waitedMs = this.#terms.timeoutMs - (this.dueAt - performance.now())
    this.#sentAt = performance.now()
    // Nearly always nothing was waited for.
    if (waitedMs > 1 || waitedMs < 0) this.#dueIn(this.#terms.timeoutMs)
  }

  override late(stalledMs: number): void {
    const { connection, timeoutMs } = this.#terms
    const moreMs = this.#moreMs(stalledMs)
    if (moreMs > 0) {
      this.#dueIn(moreMs)
      return
    }
    this.#late = true
    this.#callOff()
    const last = connection.lastError()
    this.#reject(unavailable(`no answer within ${timeoutMs} ms${because(last)}`, last))
  }

  /** For how many ms more it is worth waiting: while this process did not run, and while others get their replies. */
  #moreMs(stalledMs: number): number {
    const { timeoutMs, pulse } = this.#terms
    const now = performance.now()
    const since = this.#sentAt || this.dueAt - timeoutMs
    const maxMs = since + SLOWEST * timeoutMs - now
    const lastReplyAt = this.#sentAt > 0 && pulse && pulse.lastReplyAt > this.#sentAt ? pulse.lastReplyAt : 0
    return Math.min(maxMs, Math.max(stalledMs, lastReplyAt + timeoutMs - now))
  }

  #dueIn(ms: number): void {
    if (this.#late) return
    deadlines.end(this)
    this.dueAt = performance.now() + ms
    deadlines.start(this)
  }

  #fail(message: string, error: Error | undefined): void {
    deadlines.end(this)
    this.#reject(unavailable(message, error))
  }
}

function unavailable(why: string, cause: unknown): SluiceError {
  return new SluiceError('STORE_UNAVAILABLE', `redis: ${why}`, { cause })
}

function because(error: Error | undefined): string {
  return error ? `: ${error.message || (error as NodeJS.ErrnoException).code}` : ''
}

/** Whether a server refused a command because it had only some of its keys: their slot is on the move. Nothing ran. */
export function isTryAgain({ message }: Error): boolean {
  return message.startsWith('redis: TRYAGAIN')
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
