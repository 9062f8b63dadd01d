import { SluiceError } from '@sluice/core'
import type { OverrideTable } from '../../compile/override-table.js'
import { markOf } from '../saved-documents.js'
import type { Loaded, PoliciesSource } from '../source.js'
import { Connection } from './connection.js'
import { type CheckedPostgresOptions, postgresOptions } from './options.js'
import { PostgresDocuments } from './postgres-documents.js'
import { PostgresOverrides } from './postgres-overrides.js'
import { PostgresSavedOverrides } from './postgres-saved-overrides.js'
import type { Query } from './sql.js'

/** The interval of statements on a connection for notifications, to notice one that was cut off. */
const HEARTBEAT_MS = 5000
/** Notifications that come together cause one look. */
const SOON_MS = 20
/** After a failure: doubled each time, up to the longest. */
const FIRST_RETRY_MS = 100
const LONGEST_RETRY_MS = 5000

/** A document in PostgreSQL, as `sluice apply --to postgres` saves it, and the overrides of a table beside it. */
export class PostgresSource implements PoliciesSource {
  readonly name: string
  readonly #options: CheckedPostgresOptions
  readonly #connection: Connection
  readonly documents: NonNullable<PoliciesSource['documents']>
  readonly #documents: PostgresDocuments
  readonly #overrides: PostgresOverrides | undefined
  readonly saved: PostgresSavedOverrides | undefined
  readonly writer: PostgresSavedOverrides | undefined
  #mark = ''
  #isListening = false
  #failures = 0
  #timer: NodeJS.Timeout | undefined
  #watching: { readonly onChange: () => void; readonly onFailure: (error: Error) => void } | undefined
  /** One look after the other, and one read of the overrides at a time. */
  #last: Promise<unknown> = Promise.resolve()
  #isLooking = false
  #looksAgain = false
  #isSoon = false

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(given: unknown, name: string, save: unknown) {
    this.name = `postgres:${name}`
    this.#options = postgresOptions(given)
    this.#connection = new Connection(this.#options.pool, {
      onNotification: () => this.look(),
      onLost: () => this.look(jittered(FIRST_RETRY_MS)),
    })
    const query = async (text: string, values?: readonly unknown[]) => ({
      rows: await this.#connection.rows(text, values),
    })
    const { schema } = this.#options
    const write = save === undefined ? undefined : queryOf(save)
    this.#documents = new PostgresDocuments(query, name, schema)
    this.documents = { name, reader: this.#documents, writer: write && new PostgresDocuments(write, name, schema) }
    if (!this.#options.overrides) return
    this.#overrides = new PostgresOverrides(this.#connection, name, this.#options)
    this.saved = new PostgresSavedOverrides(query, name, schema)
    this.writer = write && new PostgresSavedOverrides(write, name, schema)
  }

  get overrides(): OverrideTable | undefined {
    return this.#overrides
  }

  load(): Promise<Loaded> {
    return this.#next(async () => {
      await this.#open()
      const saved = await this.#documents.newest()
      if (!saved) throw new Error('PostgreSQL has none so far: sluice apply --to postgres saves one')
      await this.#overrides?.look()
      this.#mark = markOf(saved)
      return { name: this.name, version: String(saved.version), mark: this.#mark, text: saved.text }
    })
  }

  watch(onChange: () => void, onFailure: (error: Error) => void): void {
    this.#watching = { onChange, onFailure }
    this.#connection.unref()
    this.look()
  }

  look(inMs: number = SOON_MS): void {
    if (this.#isLooking) this.#looksAgain = true
    // A later request does not postpone it.
    else if (!this.#isSoon) this.#lookIn(inMs, true)
  }

  refresh(): Promise<void> {
    return this.#next(async () => {
      await this.#open()
      await this.#overrides?.look()
    })
  }

  close(): void {
    this.#watching = undefined
    clearTimeout(this.#timer)
    this.#connection.close()
  }

  #lookIn(ms: number, isSoon: boolean): void {
    if (!this.#watching) return
    this.#isSoon = isSoon
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.#look(), ms).unref()
  }

  async #look(): Promise<void> {
    this.#isLooking = true
    this.#looksAgain = false
    try {
      await this.#next(async () => {
        await this.#open()
        const mark = await this.#documents.mark()
        await this.#overrides?.look()
        if (mark !== this.#mark || this.#failures > 0) this.#watching?.onChange()
      })
      this.#failures = 0
    } catch (error) {
      this.#failures++
      this.#watching?.onFailure(error as Error)
    }
    this.#isLooking = false
    const isSoon = this.#looksAgain && this.#failures === 0
    this.#lookIn(isSoon ? SOON_MS : this.#pauseMs(), isSoon)
  }

  #pauseMs(): number {
    if (this.#failures > 0) return jittered(Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (this.#failures - 1)))
    return this.#isListening && this.#connection.isOpen ? jittered(HEARTBEAT_MS) : this.#options.pollMs
  }

  /** Connects, and is notified from then on where that works. */
  async #open(): Promise<void> {
    if (this.#connection.isOpen) return
    this.#isListening = false
    await this.#connection.open()
    if (!this.#options.listen || !(await this.#connection.isDirect())) return
    try {
      await this.#connection.rows('LISTEN sluice_policies')
      this.#isListening = true
    } catch (error) {
      // A standby sends no notifications.
      if (!this.#connection.isOpen) throw error
    }
  }

  #next<Result>(step: () => Promise<Result>): Promise<Result> {
    const result = this.#last.then(step)
    this.#last = result.catch(() => {})
    return result
  }
}

/** @throws SluiceError `INVALID_POLICY` */
function queryOf(save: unknown): Query {
  const { query } = (save ?? {}) as { readonly query?: unknown }
  if (typeof query !== 'function') throw new SluiceError('INVALID_POLICY', 'policies.from: save: expected a Pool of pg')
  return (text, values) => query.call(save, text, values && [...values])
}

/** Random, so that processes that lose their server together do not come back together. */
function jittered(ms: number): number {
  return ms * (0.75 + Math.random() / 2)
}
