import { SluiceError } from '@sluice/core'
import type { OverrideTable } from '../../compile/override-table.js'
import { markOf, type SavedDocument } from '../saved-documents.js'
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
  /** Of looks and loads, since the last load. */
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
      onNotification: () => this.look(SOON_MS),
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
      const saved = await this.#newest()
      if (!saved) throw new Error('PostgreSQL has none so far: sluice apply --to postgres saves one')
      return { name: this.name, version: String(saved.version), mark: this.#mark, text: saved.text }
    })
  }

  watch(onChange: () => void, onFailure: (error: Error) => void): void {
    this.#watching = { onChange, onFailure }
    this.#connection.unref()
    this.look()
  }

  /** Without `inMs`: soon, or after a pause where the last load or look failed, as the next one may fail, too. */
  look(inMs?: number): void {
    if (this.#isLooking) this.#looksAgain = true
    // A later request does not postpone it.
    else if (!this.#isSoon) this.#lookIn(inMs ?? this.#soonMs(), inMs !== undefined || this.#failures === 0)
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

  async #newest(): Promise<SavedDocument | undefined> {
    try {
      await this.#open()
      const saved = await this.#documents.newest()
      await this.#overrides?.look()
      this.#mark = saved ? markOf(saved) : ''
      this.#failures = 0
      return saved
    } catch (error) {
      this.#failures++
      throw error
    }
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
        // Only a load shows that the document can be read again.
        if (mark !== this.#mark || this.#failures > 0) this.#watching?.onChange()
      })
    } catch (error) {
      this.#failures++
      this.#watching?.onFailure(error as Error)
    }
    this.#isLooking = false
    const isSoon = this.#looksAgain && this.#failures === 0
    this.#lookIn(isSoon ? SOON_MS : this.#pauseMs(), isSoon)
  }

  #soonMs(): number {
    return this.#failures > 0 ? this.#pauseMs() : SOON_MS
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
    if (!(await this.#connection.isDirect())) return
    await this.#connection.limitStatements()
    if (!this.#options.listen) return
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
