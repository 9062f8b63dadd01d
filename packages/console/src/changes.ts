import type { Store } from '@sluice/core'

/** A change by an operator. */
export interface ConsoleChange {
  /** The name that `authorize` returned. */
  readonly by: string
  /** Such as `block`, `unblock`, `reset`, `list-add`, `list-remove`, `forget`. */
  readonly action: string
  readonly policy?: string
  /** As it is counted: `kind=value`. */
  readonly identity?: string
  /** The state before and after, as plain data. */
  readonly before?: unknown
  readonly after?: unknown
}

/** `changes` of a store, as far as the console uses it. */
export interface ChangeLog {
  /** Makes a change, and keeps an entry of it. */
  record<Result>(change: ConsoleChange, make: () => Promise<Result>): Promise<Result>
  /** Newest first. */
  list(query: { readonly max: number; readonly cursor?: string }): Promise<object>
}

/** Undefined where the store has none. */
export function changesOf(store: Store): ChangeLog | undefined {
  const { changes } = store as { readonly changes?: ChangeLog }
  return typeof changes?.record === 'function' ? changes : undefined
}

/** Makes a change, with an entry of it where the store keeps them. */
export function makeChange<Result>(store: Store, change: ConsoleChange, make: () => Promise<Result>): Promise<Result> {
  return changesOf(store)?.record(change, make) ?? make()
}
