/**
 * Texts that the processes of a service keep beside each other for consoles, and random ids that stand for identities in them. Each has
 * an end. The texts of our own packages hold ids alone, so that an identity is erased with its id.
 */
export interface SharedNotes {
  /** The store's time in ms, as far as it is known. */
  now(): number
  /** The texts of names; undefined where there is none. */
  get(names: readonly string[]): Promise<readonly (string | undefined)[]>
  set(name: string, text: string, forMs: number): Promise<void>
  /** Notes that a process writes. */
  join(member: string): Promise<void>
  /** Processes that have written since an instant: the last 200. */
  members(since: number): Promise<readonly string[]>
  /** Ids that resolve for at least as long. */
  idsOf(identities: readonly string[], forMs: number): Promise<readonly string[]>
  /** Undefined for an id that has ended, or whose identity was forgotten. */
  identitiesOf(ids: readonly string[]): Promise<readonly (string | undefined)[]>
  /** Whether an identity was forgotten since an instant, of the last 15 minutes. Undefined if none was. */
  forgottenSince(at: number): Promise<((identity: string) => boolean) | undefined>
}

/** The symbol of the part of a store that keeps notes. */
export const SHARED_NOTES: unique symbol = Symbol.for('@sluice/core: shared notes')
