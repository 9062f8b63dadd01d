import { SluiceError } from '@sluice/core'
import { failureOf, PostgresFailure } from './failures.js'
import { type Query, type Row, rowsOf } from './sql.js'

/** The part of a client of `pg` that is used. */
interface Client {
  readonly processID?: number | null
  readonly query: Query
  connect(): Promise<unknown>
  end(): Promise<unknown>
  on(event: string, listener: (...args: never[]) => void): unknown
  unref?(): void
}

/** The part of a pool of `pg` that is used: how it connects. */
interface Pool {
  readonly Client: new (options: object) => Client
  readonly options: object
}

/** The time for PostgreSQL, in ms: for a connection, and for one statement. */
const CONNECT_TIMEOUT_MS = 10_000
const QUERY_TIMEOUT_MS = 10_000

export interface ConnectionEvents {
  /** PostgreSQL has notified of a change. */
  onNotification(): void
  onLost(): void
}

/** One connection of our own: none is taken from the pool, and one that hangs is closed. It does not keep the process alive. */
export class Connection {
  readonly #pool: Pool
  readonly #events: ConnectionEvents
  #client: Client | undefined
  /** The last statement: `pg` deprecates others while one is under way. */
  #last: Promise<unknown> = Promise.resolve()
  #isUnrefed = false
  #isClosed = false

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(pool: unknown, events: ConnectionEvents) {
    const { Client, options } = (pool ?? {}) as Partial<Pool>
    if (typeof Client !== 'function' || typeof options !== 'object') {
      throw new SluiceError('INVALID_POLICY', 'policies.from: postgres: expected a Pool of pg, or { pool, … }')
    }
    this.#pool = pool as Pool
    this.#events = events
  }

  get isOpen(): boolean {
    return this.#client !== undefined
  }

  /**
   * Connects, where it is not connected.
   *
   * @throws PostgresFailure
   */
  async open(): Promise<void> {
    if (this.#client) return
    let client: Client
    try {
      client = new this.#pool.Client(withTimeouts(this.#pool.options))
    } catch (error) {
      throw failureOf(error)
    }
    client.on('error', () => this.#lose(client))
    client.on('end', () => this.#lose(client))
    client.on('notification', () => this.#events.onNotification())
    try {
      await inTime(client.connect(), CONNECT_TIMEOUT_MS)
    } catch (error) {
      drop(client)
      throw failureOf(error)
    }
    if (this.#isClosed) {
      drop(client)
      throw new PostgresFailure('PostgreSQL: the connection is closed')
    }
    this.#client = client
    if (this.#isUnrefed) client.unref?.()
  }

  /** From now on it does not keep the process alive. */
  unref(): void {
    this.#isUnrefed = true
    this.#client?.unref?.()
  }

  /**
   * The rows of a statement, once those before have theirs. A statement that takes too long ends the connection.
   *
   * @throws PostgresFailure, also where the connection was closed meanwhile
   */
  rows(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    const client = this.#client
    const rows = this.#last.then(() => this.#rowsOn(client, text, values))
    this.#last = rows.catch(() => {})
    return rows
  }

  async #rowsOn(client: Client | undefined, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    if (!client || client !== this.#client) throw new PostgresFailure('PostgreSQL: the connection is closed')
    try {
      return await inTime(
        rowsOf((statement, given) => client.query(statement, given), text, values),
        QUERY_TIMEOUT_MS,
      )
    } catch (error) {
      if (error instanceof TookTooLong) this.#lose(client)
      throw failureOf(error)
    }
  }

  /** Whether the server itself is at the other end: a pooler between shows another process, and loses notifications. */
  async isDirect(): Promise<boolean> {
    const [row] = await this.rows('SELECT pg_backend_pid()::text AS pid')
    return this.#client?.processID !== undefined && String(this.#client?.processID) === row?.pid
  }

  /**
   * From now on the server itself ends statements that take too long. While one waits for a lock, it does not notice that its
   * client has gone, so each further attempt would take another of its connections. Not through a pooler, whose sessions are shared.
   *
   * @throws PostgresFailure
   */
  async limitStatements(): Promise<void> {
    await this.rows(
      `SELECT set_config(name, $1, false) FROM pg_settings
       WHERE name = 'statement_timeout' AND setting::bigint NOT BETWEEN 1 AND $1::bigint`,
      [String(QUERY_TIMEOUT_MS)],
    )
  }

  close(): void {
    this.#isClosed = true
    if (this.#client) this.#lose(this.#client)
  }

  #lose(client: Client): void {
    drop(client)
    if (this.#client !== client) return
    this.#client = undefined
    this.#last = Promise.resolve()
    if (!this.#isClosed) this.#events.onLost()
  }
}

class TookTooLong extends Error {}

async function inTime<Value>(value: Promise<Value>, timeoutMs: number): Promise<Value> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new TookTooLong('timeout')), timeoutMs)
  })
  try {
    return await Promise.race([value, late])
  } finally {
    clearTimeout(timer)
  }
}

/** While a statement runs, `pg` ends the socket, too. */
function drop(client: Client): void {
  Promise.resolve(client.end()).catch(() => {})
}

/** The pool's own options, including passwords that are hidden from logs. */
function withTimeouts(options: object): object {
  const copied = Object.defineProperties({}, Object.getOwnPropertyDescriptors(options))
  return Object.assign(copied, { connectionTimeoutMillis: CONNECT_TIMEOUT_MS, keepAlive: true })
}
