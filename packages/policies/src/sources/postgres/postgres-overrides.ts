import { hash } from 'node:crypto'
import type { MaybePromise } from '@sluice/core/internal'
import type { OverrideTable, StoredOverride } from '../../compile/override-table.js'
import type { Connection } from './connection.js'
import type { CheckedPostgresOptions } from './options.js'
import { OverrideIndex } from './override-index.js'
import { type Client, OverrideLookups, type StoredLimits } from './override-lookups.js'
import { quotedName, type Row } from './sql.js'

/** Removed rows are known for a day. A process that has not looked for half a day begins anew. */
const BEGIN_ANEW_MS = 43_200_000

/**
 * The overrides in the table `sluice_overrides`. The process holds the hashes of clients with one, and looks up the override
 * itself.
 */
export class PostgresOverrides implements OverrideTable {
  readonly name = 'sluice_overrides'
  readonly #connection: Connection
  readonly #document: string
  readonly #schema: string
  readonly #lookups: OverrideLookups
  #index = new OverrideIndex()
  #onChange = () => {}
  /** By the clock of PostgreSQL, in ms since 1970. */
  #lookedAt = 0

  constructor(
    connection: Connection,
    document: string,
    { schema, lookupTimeoutMs, maxOverrides }: CheckedPostgresOptions,
  ) {
    this.#connection = connection
    this.#document = document
    this.#schema = schema
    const lookups = {
      askFor: (clients: readonly Client[]) => this.#askFor(clients),
      onLate: () => this.#onChange(),
    }
    this.#lookups = new OverrideLookups(lookups, lookupTimeoutMs, maxOverrides)
  }

  onChange(listener: () => void): void {
    this.#onChange = listener
  }

  kindsOf(policy: string): ReadonlySet<string> {
    return this.#index.kindsOf(policy)
  }

  find(policy: string, kind: string, identity: string): MaybePromise<StoredOverride | undefined> {
    const digest = hash('sha256', `${policy}\n${kind}\n${identity}`, 'buffer')
    // Nearly everyone has none, and made-up identities have none.
    if (!this.#index.has(digest)) return undefined
    return this.#lookups.find({ key: digest.toString('latin1', 0, 8), policy, kind, identity })
  }

  /**
   * Reads changes.
   *
   * @throws PostgresFailure
   */
  async look(): Promise<void> {
    const schema = quotedName(this.#schema)
    const newest = (table: string) => `(SELECT max(version) FROM ${schema}.${table} WHERE name = $1)`
    const [state] = await this.#connection.rows(
      `SELECT COALESCE(GREATEST(${newest('sluice_overrides')}, ${newest('sluice_removed')}), 0)::text AS version,
         floor(extract(epoch FROM clock_timestamp()) * 1000)::text AS at`,
      [this.#document],
    )
    const version = Number(state?.version)
    const at = Number(state?.at)
    // A lower version means that the server has lost changes.
    const isAnew = version < this.#index.version || at - this.#lookedAt > BEGIN_ANEW_MS
    if (isAnew) {
      const index = new OverrideIndex()
      await index.advance(this.#connection, this.#schema, this.#document)
      this.#index = index
      this.#lookups.outdate(undefined)
      this.#onChange()
    } else if (version > this.#index.version) {
      const outdate = (key: string | undefined) => this.#lookups.outdate(key)
      await this.#index.advance(this.#connection, this.#schema, this.#document, outdate)
      this.#onChange()
    }
    this.#lookedAt = at
  }

  async #askFor(clients: readonly Client[]): Promise<readonly (StoredLimits | undefined)[]> {
    const hashes = clients.map(hashOf)
    const rows = await this.#connection.rows(
      `SELECT hash::text, policy, kind, ${IDENTITY} AS identity, limits::text, version::text,
         floor(extract(epoch FROM until) * 1000)::text AS until
       FROM ${quotedName(this.#schema)}.sluice_overrides WHERE name = $1 AND hash = ANY ($2::bigint[])`,
      [this.#document, hashes],
    )
    const byHash = new Map(rows.map((row) => [row.hash, row]))
    return clients.map((client, i) => {
      const row = byHash.get(hashes[i])
      if (!row || !isOf(client, row)) return undefined
      return { limits: String(row.limits), version: Number(row.version), until: timeOf(row.until) }
    })
  }
}

/** As PostgreSQL has it: a number with a sign, as text. */
function hashOf({ key }: Client): string {
  return Buffer.from(key, 'latin1').readBigInt64BE().toString()
}

/**
 * The hashed form of a value. For an address these are its bytes, as PostgreSQL writes some addresses in other ways than we do.
 */
const IDENTITY = `CASE kind WHEN 'ip' THEN encode(substring(inet_send(value::inet) FROM 5), 'hex') ELSE value END`

/** Where two clients have one hash, which is one pair in 2^64, one of them has no override. */
function isOf({ policy, kind, identity }: Client, row: Row): boolean {
  return row.policy === policy && row.kind === kind && row.identity === identity
}

/** `infinity` is for ever. */
function timeOf(until: unknown): number | undefined {
  if (until === null || until === undefined) return undefined
  const time = Number(until)
  return time === Number.POSITIVE_INFINITY ? undefined : time
}
