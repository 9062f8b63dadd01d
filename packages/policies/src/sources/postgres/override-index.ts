import { setImmediate } from 'node:timers/promises'
import type { Connection } from './connection.js'
import { IdentityHashes } from './identity-hashes.js'
import { quotedName, type Row } from './sql.js'

/** Changes of one reply, and those that are applied at once, in a millisecond or two. */
const PAGE = 10_000
const SLICE = 1000
/** Bytes of one change: a hash, and its new state. */
const CHANGE_BYTES = 9
const REMOVED = 0
const ALL_REMOVED = 2

/** Kinds of one policy: each is one more hash for each request. */
const MAX_KINDS = 32
/** As many as a document may have. */
const MAX_POLICIES = 10_000

const NO_KINDS: ReadonlySet<string> = new Set()

/** Listens to changes. `key`: the hash of the client as eight characters, or undefined for all. */
export type OnChange = (key: string | undefined) => void

/** The clients with an override, up to a version of the table: their hashes, and their kinds. */
export class OverrideIndex {
  readonly #hashes = new IdentityHashes()
  /** By policy, in alphabetical order. */
  readonly #kinds = new Map<string, ReadonlySet<string>>()
  #version = 0

  /** The version of the last change that it knows. */
  get version(): number {
    return this.#version
  }

  has(digest: Buffer): boolean {
    return this.#hashes.has(digest.readUInt32BE(0), digest.readUInt32BE(4))
  }

  kindsOf(policy: string): ReadonlySet<string> {
    return this.#kinds.get(policy) ?? NO_KINDS
  }

  /**
   * Reads all changes since then, page by page.
   *
   * @throws PostgresFailure; what was read until then is known, and the rest is read the next time
   */
  async advance(connection: Connection, schema: string, name: string, onChange?: OnChange): Promise<void> {
    const text = pageSql(quotedName(schema))
    const after = async (version: number) => (await connection.rows(text, [name, String(version), PAGE]))[0]
    for (let next = after(this.#version); ; ) {
      const page = await next
      const count = Number(page?.count ?? 0)
      if (!page || count === 0) return
      // PostgreSQL works on the next one meanwhile.
      if (count === PAGE) next = after(Number(page.version))
      next.catch(() => {})
      await this.#apply(page, count, onChange)
      if (count < PAGE) return
    }
  }

  async #apply({ version, changes, kinds }: Row, count: number, onChange: OnChange | undefined): Promise<void> {
    for (const pair of String(kinds ?? '').split('\t')) {
      const [policy = '', kind = ''] = pair.split('\n')
      const known = this.kindsOf(policy)
      if (kind === '' || known.has(kind)) continue
      if (known.size >= MAX_KINDS || (known.size === 0 && this.#kinds.size >= MAX_POLICIES)) continue
      this.#kinds.set(policy, new Set([...known, kind].sort()))
    }
    const bytes = Buffer.from(String(changes), 'hex')
    for (let i = 0, at = 0; i < count; i++, at += CHANGE_BYTES) {
      if (i > 0 && i % SLICE === 0) await setImmediate()
      this.#applyOne(bytes, at, onChange)
    }
    this.#version = Number(version)
  }

  #applyOne(bytes: Buffer, at: number, onChange: OnChange | undefined): void {
    const [high, low] = [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4)]
    const what = bytes[at + 8]
    if (what === ALL_REMOVED) this.#hashes.clear()
    else if (what === REMOVED) this.#hashes.delete(high, low)
    else this.#hashes.add(high, low)
    onChange?.(what === ALL_REMOVED ? undefined : bytes.toString('latin1', at, at + 8))
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
