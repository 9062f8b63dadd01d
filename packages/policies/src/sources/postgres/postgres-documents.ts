import { MAX_LISTED, markOf, type SavedDocument, type SavedDocuments, VersionConflict } from '../saved-documents.js'
import { PostgresFailure } from './failures.js'
import { type Query, quotedName, type Row, rowsOf } from './sql.js'

const MS = 'floor(extract(epoch FROM at) * 1000)::text'
const COLUMNS = `version::text AS number, document, author, ${MS} AS ms`

/** The versions of a document in PostgreSQL, in the table `sluice_policies`. */
export class PostgresDocuments implements SavedDocuments {
  readonly #query: Query
  readonly #name: string
  readonly #table: string

  /**
   * @param query of a `Pool` or a `Client` of `pg`: `(text, values) => pool.query(text, values)`
   * @param schema where the tables are
   */
  constructor(query: Query, name = 'default', schema = 'public') {
    this.#query = query
    this.#name = name
    this.#table = `${quotedName(schema)}.sluice_policies`
  }

  /** The number of the version in force; 0 where none was saved. */
  async version(): Promise<number> {
    return (await this.#inForce())?.version ?? 0
  }

  /**
   * The mark of the version in force, as `markOf`: numbers begin anew where all versions were deleted. Empty where none was
   * saved.
   */
  async mark(): Promise<string> {
    const saved = await this.#inForce()
    return saved ? markOf(saved) : ''
  }

  /** The version in force, without its text. */
  async #inForce(): Promise<Pick<SavedDocument, 'version' | 'at'> | undefined> {
    const newest = `FROM ${this.#table} WHERE name = $1 ORDER BY version DESC LIMIT 1`
    const [row] = await this.#rows(`SELECT version::text AS number, ${MS} AS ms ${newest}`)
    return row && { version: Number(row.number), at: Number(row.ms) }
  }

  /** Undefined if none was saved. */
  async newest(): Promise<SavedDocument | undefined> {
    const [saved] = await this.#newest(1)
    return saved
  }

  /** The last twenty, newest first. */
  async history(): Promise<readonly SavedDocument[]> {
    return this.#newest(MAX_LISTED)
  }

  /**
   * Saves a version on top of the expected one in force, and resolves to its number.
   *
   * @throws VersionConflict where another one is
   */
  async save(text: string, expected: number, by: string): Promise<number> {
    // The second of two at once waits for the first, by the primary key.
    const [row] = await this.#rows(
      `INSERT INTO ${this.#table} (name, version, document, author)
       SELECT $1, $2::bigint + 1, $3, $4
       WHERE COALESCE((SELECT max(version) FROM ${this.#table} WHERE name = $1), 0) = $2::bigint
       ON CONFLICT DO NOTHING RETURNING version::text`,
      storable('the document', expected, text, by),
    )
    if (!row) throw new VersionConflict(expected, await this.version())
    return Number(row.version)
  }

  async #newest(max: number): Promise<SavedDocument[]> {
    const text = `SELECT ${COLUMNS} FROM ${this.#table} WHERE name = $1 ORDER BY version DESC LIMIT $2::integer`
    return (await this.#rows(text, [max])).map(savedOf)
  }

  #rows(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> {
    return rowsOf(this.#query, text, [this.#name, ...values])
  }
}

function savedOf({ number, document, author, ms }: Row): SavedDocument {
  return { version: Number(number), text: String(document), by: String(author), at: Number(ms) }
}

/** PostgreSQL holds no NUL, and would save another text in place of half a character. */
function storable(what: string, ...values: readonly (string | number)[]): readonly (string | number)[] {
  for (const value of values) {
    if (typeof value !== 'string' || (value.isWellFormed() && !value.includes('\0'))) continue
    throw new PostgresFailure(`expected ${what} without NUL and without halves of characters`)
  }
  return values
}
