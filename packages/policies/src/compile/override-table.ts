import type { Later } from '../match/later.js'

/** Overrides of single clients that are stored outside of the document, and looked up where a request needs them. */
export interface OverrideTable {
  /** How messages call it. */
  readonly name: string
  /** Kinds of identities for which a policy has some. */
  kindsOf(policy: string): ReadonlySet<string>
  /** Undefined where there is none. A promise only where it has to be asked for; it never rejects, and never takes long. */
  find(policy: string, kind: string, identity: string): Later<StoredOverride | undefined>
}

/** An override as a table has it. */
export interface StoredOverride {
  /** The changed limits as JSON, not checked yet. */
  readonly limits: string
  /** When it ends, in ms since 1970. */
  readonly until: number | undefined
  /** The last one that was right, of the same client: for as long as this one is wrong. */
  readonly before: StoredOverride | undefined
  /** Set where its limits cannot be those of its policy. */
  isWrong: boolean
}
