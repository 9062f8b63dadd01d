import type { ChangeBy } from './overrides.js'

/** `versions` of policies, as far as the console uses them: see `PolicyVersions` of `@sluice/policies`. */
export interface PolicyVersions {
  /** Whether `rollback` can write. */
  readonly canSave: boolean
  /** The last twenty, newest first. */
  list(): Promise<readonly { readonly version: number }[]>
  /** The effect of a rollback. Undefined for a version that is not kept. */
  plan(version: number): Promise<object | undefined>
  /** Resolves to the number of the new version; undefined for a version that is not kept. */
  rollback(to: { readonly version: number; readonly expected: number }, by: ChangeBy): Promise<number | undefined>
}
