import { MIGRATIONS } from './migrations.generated.js'
import { type Query, quotedName, rowsOf } from './sql.js'

/** The version of the tables that this package needs. */
export const TABLES_VERSION = MIGRATIONS.length

/** The version of the existing tables; 0 without any. */
export async function tablesVersion(query: Query, schema = 'public'): Promise<number> {
  const table = `${quotedName(schema)}.sluice_migrations`
  const [there] = await rowsOf(query, 'SELECT to_regclass($1) IS NOT NULL AS is_there', [table])
  if (!there?.is_there) return 0
  const [row] = await rowsOf(query, `SELECT COALESCE(max(version), 0)::text AS version FROM ${table}`)
  return Number(row?.version)
}

/**
 * Makes the tables of policies and overrides in PostgreSQL, or brings them up to date, and resolves to their version. Where they
 * are up to date, nothing is changed. Among several at once, one does it.
 *
 * @param query of one `Client` of `pg`, or of a `Pool`
 * @param schema of the tables: it has to exist
 * @throws PostgresFailure with the remedy
 */
export async function migratePostgres(query: Query, schema = 'public'): Promise<number> {
  for (let version = await tablesVersion(query, schema); version < TABLES_VERSION; version++) {
    await rowsOf((text) => query(text), migrationSql(version, schema))
  }
  return tablesVersion(query, schema)
}

/** The SQL that makes the tables of a version from those of the version before. Sent as one text it is one transaction. */
export function migrationSql(from: number, schema: string): string {
  return [
    // Two at once would both find no table.
    `SELECT pg_advisory_xact_lock(${LOCK});`,
    `SET LOCAL search_path = ${quotedName(schema)};`,
    'SET LOCAL client_min_messages = warning;',
    MIGRATIONS[from],
  ].join('\n')
}

const LOCK = '8317708060514844001'
