import { hash } from 'node:crypto'

/** Most overrides of one page. */
export const MAX_OVERRIDES_LISTED = 1000

/** The client of an override, and its policy. */
export interface OverridePlace {
  readonly policy: string
  readonly kind: string
  /** For people: headers, cookies and credentials as `sha256:` and the hash. */
  readonly value: string
  /** The same as processes look it up: an address as its bytes in hexadecimal digits. */
  readonly identity: string
}

/** An override beside a document. Plain data, as JSON holds it. */
export interface SavedOverride {
  readonly policy: string
  readonly kind: string
  readonly value: string
  /** The changed fields, as `limits` of an override in a document. */
  readonly limits: readonly object[]
  /** When it ends, in ms since 1970. Absent for one that a program wrote to PostgreSQL without an end. */
  readonly until?: number
  readonly reason: string
  /** Who wrote it: a name in Redis, a role in PostgreSQL. */
  readonly by: string
  /** When it was written, in ms since 1970. */
  readonly at: number
  /** Higher for each write of it. */
  readonly version: number
}

/** The part of an override that its author gives. */
export interface NewOverride {
  readonly limits: readonly object[]
  readonly until: number
  readonly reason: string
  readonly by: string
}

/** Selects overrides. */
export interface OverridesQuery {
  /** @default all policies */
  readonly policy?: string
  /** The `cursor` of the page before. @default the beginning */
  readonly cursor?: string
  /** Maximum per page, 1 to 1,000. @default 100 */
  readonly max?: number
}

export interface OverridePage {
  /** In no order. Those that have ended are not among them. */
  readonly entries: readonly SavedOverride[]
  /** The position of the next page, which names no client; absent on the last page. */
  readonly cursor?: string
}

/** The overrides beside one document, where they are stored. One that has ended is as if it were not there. */
export interface SavedOverrides {
  get(place: OverridePlace): Promise<SavedOverride | undefined>
  page(policy: string | undefined, cursor: string | undefined, max: number): Promise<OverridePage>
  /**
   * Writes one in place of the version that is expected, 0 for none, and resolves to its version.
   *
   * @throws OverrideConflict where another version is there; nothing is changed
   */
  set(place: OverridePlace, override: NewOverride, expected: number): Promise<number>
  /** @throws OverrideConflict */
  remove(place: OverridePlace, expected: number): Promise<void>
}

/** Somebody else has changed the override of this client meanwhile. */
export class OverrideConflict extends Error {
  /** The override that is there; undefined for none. */
  readonly found: SavedOverride | undefined

  constructor(expected: number, found: SavedOverride | undefined) {
    const wanted = expected === 0 ? 'no override of this client' : `version ${expected} of the override`
    const got = found ? `version ${found.version} is there` : 'there is none'
    super(`expected ${wanted}, and ${got}: it was changed meanwhile, or is not the one that was shown`)
    this.found = found
  }
}

/** The number of a client in the order of pages, which is that of PostgreSQL's column `hash`. */
export function hashOfPlace({ policy, kind, identity }: Omit<OverridePlace, 'value'>): bigint {
  return hash('sha256', `${policy}\n${kind}\n${identity}`, 'buffer').readBigInt64BE(0)
}
