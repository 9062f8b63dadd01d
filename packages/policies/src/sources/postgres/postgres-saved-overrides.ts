import {
  hashOfPlace,
  type NewOverride,
  OverrideConflict,
  type OverridePage,
  type OverridePlace,
  type SavedOverride,
  type SavedOverrides,
} from '../saved-overrides.js'
import { type Query, quotedName, type Row, rowsOf } from './sql.js'

const COLUMNS = `policy, kind, value, limits::text AS limits, floor(extract(epoch FROM until) * 1000)::text AS until,
  reason, author, floor(extract(epoch FROM at) * 1000)::text AS at, version::text AS version, hash::text AS hash`
const IN_FORCE = '(until IS NULL OR until > clock_timestamp())'

/** The overrides beside a document in PostgreSQL, in the table `sluice_overrides`. */
export class PostgresSavedOverrides implements SavedOverrides {
  readonly #query: Query
  readonly #name: string
  readonly #table: string

  constructor(query: Query, name: string, schema: string) {
    this.#query = query
    this.#name = name
    this.#table = `${quotedName(schema)}.sluice_overrides`
  }

  async get(place: OverridePlace): Promise<SavedOverride | undefined> {
    const [row] = await this.#rows(
      `SELECT ${COLUMNS} FROM ${this.#table} ${OF_CLIENT} AND ${IN_FORCE}`,
      clientOf(place),
    )
    return row && overrideOf(row)
  }

  async page(policy: string | undefined, cursor: string | undefined, max: number): Promise<OverridePage> {
    const text = `SELECT ${COLUMNS} FROM ${this.#table} AS known
      WHERE name = $1 AND ($2::text IS NULL OR policy = $2) AND ($3::bigint IS NULL OR hash > $3::bigint) AND ${IN_FORCE}
      ORDER BY known.hash LIMIT $4::integer`
    const rows = await this.#rows(text, [policy ?? null, cursor ?? null, max + 1])
    const entries = rows.slice(0, max).map(overrideOf)
    return rows.length > max ? { entries, cursor: String(rows[max - 1]?.hash) } : { entries }
  }

  async set(place: OverridePlace, override: NewOverride, expected: number): Promise<number> {
    const [row] = expected === 0 ? await this.#insert(place, override) : await this.#update(place, override, expected)
    if (!row) throw new OverrideConflict(expected, await this.get(place))
    return Number(row.version)
  }

  async remove(place: OverridePlace, expected: number): Promise<void> {
    const text = `DELETE FROM ${this.#table} ${OF_CLIENT} AND version = $5::bigint AND ${IN_FORCE} RETURNING version`
    const [row] = await this.#rows(text, [...clientOf(place), expected])
    if (!row) throw new OverrideConflict(expected, await this.get(place))
  }

  /** Also in place of one that has ended. */
  #insert({ policy, kind, value }: OverridePlace, { limits, until, reason }: NewOverride): Promise<readonly Row[]> {
    const text = `INSERT INTO ${this.#table} AS known (name, policy, kind, value, limits, until, reason)
      VALUES ($1, $2, $3, $4, $5::jsonb, ${instant('$6')}, $7)
      ON CONFLICT (name, policy, kind, value) DO UPDATE
      SET limits = EXCLUDED.limits, until = EXCLUDED.until, reason = EXCLUDED.reason
      WHERE known.until <= clock_timestamp() RETURNING version::text AS version`
    return this.#rows(text, [policy, kind, value, JSON.stringify(limits), until, reason])
  }

  #update(place: OverridePlace, { limits, until, reason }: NewOverride, expected: number): Promise<readonly Row[]> {
    const text = `UPDATE ${this.#table} SET limits = $6::jsonb, until = ${instant('$7')}, reason = $8
      ${OF_CLIENT} AND version = $5::bigint AND ${IN_FORCE} RETURNING version::text AS version`
    return this.#rows(text, [...clientOf(place), expected, JSON.stringify(limits), until, reason])
  }

  #rows(text: string, values: readonly unknown[]): Promise<readonly Row[]> {
    return rowsOf(this.#query, text, [this.#name, ...values])
  }
}

const OF_CLIENT = 'WHERE name = $1 AND hash = $2::bigint AND policy = $3 AND kind = $4'

function clientOf(place: OverridePlace): readonly unknown[] {
  return [String(hashOfPlace(place)), place.policy, place.kind]
}

/** `$n`: ms since 1970. */
function instant(ms: string): string {
  return `'epoch'::timestamptz + ${ms}::bigint * interval '1 millisecond'`
}

function overrideOf({ policy, kind, value, limits, until, reason, author, at, version }: Row): SavedOverride {
  const end = until === null || until === undefined ? Number.POSITIVE_INFINITY : Number(until)
  return {
    policy: String(policy),
    kind: String(kind),
    value: String(value),
    limits: JSON.parse(String(limits)) as object[],
    ...(Number.isFinite(end) && { until: end }),
    reason: String(reason ?? ''),
    by: String(author),
    at: Number(at),
    version: Number(version),
  }
}
