import type { StoreChanges } from '@sluice/core'

/** The client of an override, and what it changes: see `policies.overrides` of `@sluice/policies`. */
export interface OverrideBody {
  readonly policy: string
  readonly key: Readonly<Record<string, string>>
  readonly limits: readonly object[]
  readonly until: string | number
  readonly reason?: string
  readonly expected?: number
}

/** An override in force, of a client of a policy. */
export interface SavedOverride {
  readonly policy: string
  readonly limits: readonly object[]
  readonly until?: number
  readonly by: string
  readonly version: number
}

export interface ChangeBy {
  readonly by: string
  readonly changes: StoreChanges
}

/** `overrides` of policies, as far as the console uses it: each is for one client, until a date. */
export interface PolicyOverrides {
  /** Absent in earlier versions. */
  get?(of: Pick<OverrideBody, 'policy' | 'key'>): Promise<SavedOverride | undefined>
  list(query: { readonly policy?: string; readonly cursor?: string; readonly max?: number }): Promise<object>
  /** Who is affected, and how. `lines` are those of a document with the same effect. */
  plan(override: OverrideBody): Promise<{ readonly canSave: boolean; readonly lines: string }>
  set(override: OverrideBody, by: ChangeBy): Promise<object>
  /** Resolves to whether there was one. */
  remove(override: Pick<OverrideBody, 'policy' | 'key' | 'expected'>, by: ChangeBy): Promise<boolean>
}
