import type { Connection } from './connection.js'
import { IdentityHashes } from './identity-hashes.js'
import { quotedName, type Row } from './sql.js'

/** Rows of one reply: applied at once, in some milliseconds. */
const PAGE = 10_000
/** Bytes of one change: a hash, and what has become of it. */
const CHANGE_BYTES = 9
const REMOVED = 0
const ALL_REMOVED = 2

const NO_KINDS: ReadonlySet<string> = new Set()

/** What is told of changes: the hash of the client as eight characters, or undefined for all. */
export type OnChange = (key: string | undefined) => void

/** Which clients have an override, up to a version of the table: their hashes, and the kinds that they are of. */
export class OverrideIndex {
  readonly #hashes = new IdentityHashes()
  /** By policy, in alphabetical order. */
  readonly #kinds = new Map<string, ReadonlySet<string>>()
  #version = 0

  /** Of the last change that it knows. */
  get version(): number {
    return this.#version
  }

  get size(): number {
    return this.#hashes.size
  }

  has(digest: Buffer): boolean {
    return this.#hashes.has(digest.readUInt32BE(0), digest.readUInt32BE(4))
  }

  kindsOf(policy: string): ReadonlySet<string> {
    return this.#kinds.get(policy) ?? NO_KINDS
  }

  /**
   * Reads all that has changed since, page by page.
   *
   * @throws PostgresFailure; what was read until then is known, and the rest is read the next time
   */
  async advance(connection: Connection, schema: string, name: string, onChange: OnChange): Promise<void> {
    const text = pageSql(quotedName(schema))
    for (;;) {
      const [page] = await connection.rows(text, [name, String(this.#version), PAGE])
      const count = Number(page?.count ?? 0)
      if (count > 0) this.#apply(page as Row, count, onChange)
      if (count < PAGE) return
    }
  }

  #apply({ version, changes, kinds }: Row, count: number, onChange: OnChange): void {
    for (const pair of String(kinds ?? '').split('\t')) {
      const [policy = '', kind = ''] = pair.split('\n')
      const known = this.kindsOf(policy)
      if (kind !== '' && !known.has(kind)) this.#kinds.set(policy, new Set([...known, kind].sort()))
    }
    const bytes = Buffer.from(String(changes), 'hex')
    for (let i = 0, at = 0; i < count; i++, at += CHANGE_BYTES) {
      const [high, low] = [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4)]
      const what = bytes[at + 8]
      if (what === ALL_REMOVED) this.#hashes.clear()
      else if (what === REMOVED) this.#hashes.delete(high, low)
      else this.#hashes.add(high, low)
      onChange(what === ALL_REMOVED ? undefined : bytes.toString('latin1', at, at + 8))
    }
    this.#version = Number(version)
  }
}

/** The next changes of a document after a version, in their order, as few bytes: `$1` name, `$2` version, `$3` how many. */
function pageSql(schema: string): string {
  const after = 'WHERE name = $1 AND version > $2::bigint ORDER BY version LIMIT $3::integer'
  return `WITH page AS (
    (SELECT version, hash, 1 AS what, policy || chr(10) || kind AS of_kind FROM ${schema}.sluice_overrides ${after})
    UNION ALL
    (SELECT version, COALESCE(hash, 0), CASE WHEN hash IS NULL THEN ${ALL_REMOVED} ELSE ${REMOVED} END, NULL
     FROM ${schema}.sluice_removed ${after})
    ORDER BY version LIMIT $3::integer
  )
  SELECT count(*)::text AS count, max(version)::text AS version,
    (SELECT string_agg(of_kind, chr(9)) FROM (SELECT of_kind FROM page GROUP BY of_kind) AS kinds) AS kinds,
    encode(string_agg(int8send(hash) || set_byte('\\x00'::bytea, 0, what), ''::bytea ORDER BY version), 'hex') AS changes
  FROM page`
}
