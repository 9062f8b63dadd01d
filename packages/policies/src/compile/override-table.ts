import type { MaybePromise } from '@sluice/core/internal'

/** Overrides of single clients that are stored outside of the document, and looked up where a request needs them. */
export interface OverrideTable {
  /** Its name in messages. */
  readonly name: string
  /** Kinds of identities for which a policy has some. */
  kindsOf(policy: string): ReadonlySet<string>
  /** Calls back when overrides have changed. It has one listener. */
  onChange(listener: () => void): void
  /** Undefined if there is none. A promise only where a look-up is needed. It never rejects, and never takes long. */
  find(policy: string, kind: string, identity: string): MaybePromise<StoredOverride | undefined>
}

/** An override of a table. */
export interface StoredOverride {
  /** The changed limits as JSON, not checked yet. */
  readonly limits: string
  /** Its version, by which people find it without the name of its client. */
  readonly version: number
  /** When it ends, in ms since 1970. */
  readonly until: number | undefined
  /** The last valid override of the same client, which applies while this one is wrong. */
  readonly before: StoredOverride | undefined
  /** Set where its limits do not fit its policy. */
  isWrong: boolean
}
