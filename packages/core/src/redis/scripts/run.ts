import type { StoreScript } from '../../store/keyed-scripts.js'
import { Deadlines, Timed } from '../../util/deadlines.js'
import { SluiceError } from '../../util/errors.js'
import type { Connection, Wait } from '../clients/connection.js'
import type { Encoded } from './encode.js'

/** The deadlines of all stores. */
const deadlines = new Deadlines()

/** Multiple of `timeoutMs` that a reply may take while other replies keep coming. */
const SLOWEST = 10

/** The destination of scripts, and their clock. */
export interface Server {
  readonly connection: Connection
  /** The start of every key. */
  readonly prefix: string
  readonly timeoutMs: number
  /** Replaces Redis's clock, if given. */
  readonly clock: (() => number) | undefined
}

/** The last reply of a server, by the performance clock. */
export interface Pulse {
  lastReplyAt: number
  /** When its command was sent. */
  sentAt: number
}

export interface RunOptions {
  /** The master of a cluster to send to; otherwise the master of the first key. */
  readonly node: string | undefined
  /** The pulse of the server: one that keeps replying to others is slow, but available. */
  readonly pulse: Pulse | undefined
  /** Called when the script is sent. */
  readonly onSent: (() => void) | undefined
}

/** To the master of the first key, without a pulse. */
export const RUN: RunOptions = { node: undefined, pulse: undefined, onSent: undefined }

/**
 * Runs a script once: waits until the connection is ready, encodes and sends. A script that cannot be sent within
 * `timeoutMs`, or before the deadline of the first connection, is never sent. A script without a reply `timeoutMs`
 * later may have run.
 *
 * A connection sends a script's source the first time, and its SHA-1 from then on. A script that is new to Redis is
 * therefore not sent twice, and later calls of known scripts do not overtake it.
 *
 * @throws SluiceError `STORE_UNAVAILABLE`
 */
export function run(
  connection: Connection,
  timeoutMs: number,
  script: StoreScript,
  encode: () => Encoded,
  { node, pulse, onSent }: RunOptions = RUN,
): Promise<unknown> {
  const attempted = async (attempt: Attempt) => {
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
      // `sendTo` sends at once or not at all.
      return (connection.sendTo as NonNullable<Connection['sendTo']>)(node, parts)
    }
    try {
      return await send(false)
    } catch (error) {
      // Only NOSCRIPT proves that nothing ran. Replaying a timeout could charge the client twice.
      if (attempt.isLate() || !isNoScript(error)) throw error
      return await send(true)
    }
  }
  return within({ connection, timeoutMs }, attempted, pulse)
}

/** Runs a script whose first argument is the time: '' for Redis's own. */
export function runAt(
  { connection, timeoutMs, clock }: Server,
  script: StoreScript,
  keys: string[],
  args: readonly string[],
): Promise<unknown> {
  return run(connection, timeoutMs, script, () => ({ keys, args: [clock ? String(clock()) : '', ...args] }))
}

/**
 * Runs a script by EVAL and by EVALSHA, as connections need both. The commands are sent together, so that both take no
 * longer than one decision.
 *
 * @throws SluiceError `STORE_UNAVAILABLE`
 */
export async function tryScript(
  connection: Connection,
  timeoutMs: number,
  script: StoreScript,
  { keys, args }: Encoded,
): Promise<void> {
  const rest = [String(keys.length), ...keys, ...args]
  await within({ connection, timeoutMs }, (attempt) => {
    const send = (...command: string[]) => connection.send(keys[0] as string, () => [...command, ...rest], attempt)
    return Promise.all([send('EVAL', script.source), send('EVALSHA', script.sha1)])
  })
}

/** Deletes keys one by one, as they may be on different nodes. */
export function deleteKeys(connection: Connection, timeoutMs: number, keys: readonly string[]): Promise<unknown> {
  return within({ connection, timeoutMs }, (attempt) =>
    Promise.all(keys.map((key) => connection.send(key, () => ['DEL', key], attempt))),
  )
}

/** Reads keys one by one. */
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

/** Reads fields of hashes one by one, as texts. */
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

/** Sends one command on a key. */
export function callKey({ connection, timeoutMs }: Server, command: string, key: string, ...args: string[]) {
  return within({ connection, timeoutMs }, (attempt) => connection.send(key, () => [command, key, ...args], attempt))
}

/** Resolves when there is a connection; rejects if there is none by the deadline of a first connection, or of a script. */
export async function whenConnected({ connection, timeoutMs }: Terms): Promise<void> {
  await within({ connection, timeoutMs }, () => Promise.resolve())
}

type Terms = Pick<Server, 'connection' | 'timeoutMs'>

/** `pulse` is not one of the terms: V8 would compile twice for objects with it and without. */
function within(terms: Terms, send: (attempt: Attempt) => Promise<unknown>, pulse?: Pulse): Promise<unknown> {
  return new Promise((resolve, reject) => new Attempt(terms, pulse, resolve, reject).start(send))
}

/** A command to Redis, until its reply or its deadline. */
class Attempt extends Timed implements Wait {
  readonly #terms: Terms
  readonly #pulse: Pulse | undefined
  readonly #resolve: (reply: unknown) => void
  readonly #reject: (error: SluiceError) => void
  /** By the performance clock; 0 until it is sent. */
  #sentAt = 0
  #late = false
  #callOff = () => {}

  constructor(
    terms: Terms,
    pulse: Pulse | undefined,
    resolve: (reply: unknown) => void,
    reject: (error: SluiceError) => void,
  ) {
    const { connection, timeoutMs } = terms
    // A connection is awaited: processes that start or thaw together must not each count by themselves.
    super(Math.max(performance.now() + timeoutMs, connection.startsUntil()))
    this.#terms = terms
    this.#pulse = pulse
    this.#resolve = resolve
    this.#reject = reject
  }

  start(send: (attempt: Attempt) => Promise<unknown>): void {
    const { connection } = this.#terms
    const pulse = this.#pulse
    if (connection.isClosed()) {
      this.#reject(unavailable('the store is closed', undefined))
      return
    }
    deadlines.start(this)
    const isReady = () => {
      send(this).then(
        (reply) => {
          deadlines.end(this)
          if (pulse) {
            pulse.lastReplyAt = performance.now()
            pulse.sentAt = this.#sentAt
          }
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

  /** Notes that the command is sent, once or again. Its timeout runs from the first time on. */
  sent(): void {
    const isAgain = this.#sentAt > 0
    this.#sentAt = performance.now()
    if (isAgain) return
    const waitedMs = this.#terms.timeoutMs - (this.dueAt - this.#sentAt)
    // Nearly always, there was no wait.
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
    this.#reject(unavailable(`no answer within ${Math.round(timeoutMs)} ms${because(last)}`, last))
  }

  /** Further ms to wait: for time in which this process did not run, and while other commands get replies. */
  #moreMs(stalledMs: number): number {
    const { timeoutMs } = this.#terms
    const pulse = this.#pulse
    const now = performance.now()
    const sentAt = this.#sentAt
    const maxMs = (sentAt || this.dueAt - timeoutMs) + SLOWEST * timeoutMs - now
    // Replies come in the order of sending: after one to a later command, none will come to this one.
    const isAlive = sentAt > 0 && pulse && pulse.lastReplyAt > sentAt && pulse.sentAt <= sentAt
    return Math.min(maxMs, Math.max(stalledMs, isAlive ? pulse.lastReplyAt + timeoutMs - now : 0))
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

/** Whether a server refused a command because it had only some of its keys, as their slot is migrating. Nothing ran. */
export function isTryAgain({ message }: Error): boolean {
  return message.startsWith('redis: TRYAGAIN')
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT')
}
