import { Redis } from 'ioredis'
import type { Deadline } from './deadline.js'
import { failureOf, NotPermitted, type Unreachable } from './redis-failure.js'
import { addressOf, nodeName, type Target } from './target.js'

/** Longest wait for a connection, and for one reply, in ms. */
const CONNECT_MS = 5000
const ANSWER_MS = 3000

/** Fields of `INFO`, by name. */
export type Info = Readonly<Record<string, string>>

/** A connection to one Redis process, over which commands that read are sent. */
export class Server {
  readonly target: Target
  /** Its name in findings. */
  readonly name: string
  /** Whether a password was given and none is needed. */
  readonly hasNeedlessPassword: boolean
  readonly #client: Redis
  readonly #deadline: Deadline
  #failure: Unreachable | undefined
  #hasAnswered = false
  #info: Promise<Info> | undefined
  /** Commands that it refused, as an ACL names them, with the checks that are missing because of it. */
  readonly #denied = new Map<string, Set<string>>()

  private constructor(client: Redis, target: Target, deadline: Deadline, hasNeedlessPassword: boolean) {
    this.#client = client
    this.target = target
    this.name = target.path ?? nodeName(target.host, target.port)
    this.#deadline = deadline
    this.hasNeedlessPassword = hasNeedlessPassword
  }

  /** Connects and logs in. @throws Unreachable */
  static async connect(target: Target, deadline: Deadline): Promise<Server> {
    const client = clientFor(target)
    try {
      const hasNeedlessPassword = await open(client, target, deadline)
      return new Server(client, target, deadline, hasNeedlessPassword)
    } catch (error) {
      client.disconnect()
      throw failureOf(handshakeOf(error, target), 'auth', `Redis at ${addressOf(target)} cannot be used`)
    }
  }

  /** The name of the user of this connection. */
  get user(): string {
    return this.target.username ?? 'default'
  }

  /** Every command that was not permitted, with the checks that are missing because of it. */
  get denied(): ReadonlyMap<string, ReadonlySet<string>> {
    return this.#denied
  }

  /**
   * Sends one command and resolves to its reply. Errors that Redis replies are for the caller, except that the command is not
   * permitted.
   *
   * @throws NotPermitted, Unreachable, or the error that Redis replied
   */
  async call(command: string, ...args: (string | number)[]): Promise<unknown> {
    if (this.#failure) throw this.#failure
    try {
      const reply = await this.#deadline.within(this.#client.call(command, ...args.map(String)), ANSWER_MS)
      this.#hasAnswered = true
      return reply
    } catch (error) {
      if (isReply(error) && !isAboutAll(error)) {
        this.#hasAnswered = true
        const failure = failureOf(error, aclName(command, args), this.name)
        throw failure instanceof NotPermitted ? failure : error
      }
      this.#failure = this.#hasAnswered
        ? (failureOf(error, '', `Redis at ${this.name} cannot be asked any more`) as Unreachable)
        : (failureOf(handshakeOf(error, this.target), '', `Redis at ${this.name} cannot be used`) as Unreachable)
      throw this.#failure
    }
  }

  /** The same, but resolves to undefined if it is not permitted, and notes the missing check. */
  async tryCall(purpose: string, command: string, ...args: (string | number)[]): Promise<unknown> {
    try {
      return await this.call(command, ...args)
    } catch (error) {
      if (!(error instanceof NotPermitted)) throw error
      this.deny(error.command, purpose)
      return undefined
    }
  }

  /** Notes a check that could not be made. */
  deny(command: string, purpose: string): void {
    const purposes = this.#denied.get(command) ?? new Set()
    this.#denied.set(command, purposes.add(purpose))
  }

  /** Read once. @throws NotPermitted, Unreachable */
  info(): Promise<Info> {
    this.#info ??= this.call('INFO').then((text) => fieldsOf(String(text)))
    return this.#info
  }

  /** One setting. Undefined if settings cannot be read. */
  async setting(purpose: string, name: string): Promise<string | undefined> {
    const reply = await this.tryCall(purpose, 'CONFIG', 'GET', name)
    return Array.isArray(reply) && reply.length === 2 ? String(reply[1]) : undefined
  }

  close(): void {
    this.#client.disconnect()
  }
}

/** Lines of `field:value`, as INFO and CLUSTER INFO reply them. */
export function fieldsOf(text: string): Info {
  const fields: Record<string, string> = Object.create(null)
  for (const line of text.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon > 0 && !line.startsWith('#')) fields[line.slice(0, colon)] = line.slice(colon + 1)
  }
  return fields
}

function clientFor({ host, port, path, tls }: Target): Redis {
  return new Redis<'legacy'>({
    ...(path === undefined ? { host, port } : { path }),
    ...(tls && { tls: { ...tls, ...(isAddress(host) ? {} : { servername: host }) } }),
    lazyConnect: true,
    // One attempt: a doctor that waits for Redis to recover has nothing to report.
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    connectTimeout: CONNECT_MS,
    // Only the commands of this class are sent, in the protocol that every server supports.
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
  })
}

/** Resolves to whether the password was needless. */
async function open(client: Redis, { username, password, db }: Target, deadline: Deadline): Promise<boolean> {
  // This event has the cause; `connect` rejects without it.
  let cause: unknown
  client.on('error', (error) => {
    cause ??= error
  })
  try {
    await deadline.within(client.connect(), CONNECT_MS)
    const isNeedless = password !== undefined && !(await logIn(client, username, password, deadline))
    if (db !== 0) await deadline.within(client.call('SELECT', String(db)), ANSWER_MS)
    return isNeedless
  } catch (error) {
    throw isReply(error) ? error : (cause ?? error)
  }
}

/** Resolves to false if Redis needs no password. */
async function logIn(
  client: Redis,
  username: string | undefined,
  password: string,
  deadline: Deadline,
): Promise<boolean> {
  const credentials = username === undefined ? [password] : [username, password]
  try {
    await deadline.within(client.call('AUTH', ...credentials), ANSWER_MS)
    return true
  } catch (error) {
    if (isReply(error) && /without any password configured/.test(error.message)) return false
    throw error
  }
}

/**
 * A failed TLS handshake does not always have a cause. A server without TLS reads it as the start of a command. A server that
 * misses a certificate closes the connection after the handshake.
 */
function handshakeOf(error: unknown, { tls }: Target): unknown {
  if (!tls || isReply(error)) return error
  const text = error instanceof Error ? error.message : ''
  if (/timed out|TIMEDOUT|time is up/.test(text)) return new Error('TLS handshake: silence')
  return /closed|ECONNRESET|EPIPE/.test(text) ? new Error('TLS handshake: closed') : error
}

function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === 'ReplyError'
}

/** Whether a reply says that Redis serves no command as it should, rather than something about this one. */
function isAboutAll({ message }: Error): boolean {
  return /^(LOADING|BUSY|NOAUTH|MASTERDOWN|DENIED)\b|^ERR max number of clients/.test(message)
}

const CONTAINERS = new Set(['CONFIG', 'MEMORY', 'CLUSTER', 'SENTINEL', 'ACL', 'SCRIPT', 'CLIENT'])

function aclName(command: string, [first]: readonly (string | number)[]): string {
  return CONTAINERS.has(command) ? `${command}|${first}`.toLowerCase() : command.toLowerCase()
}

function isAddress(host: string): boolean {
  return host.includes(':') || /^[\d.]+$/.test(host)
}
