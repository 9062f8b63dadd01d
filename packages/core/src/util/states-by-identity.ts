import { dropOldest } from './drop-oldest.js'

/** The state of an identity in a cell of a policy. */
export interface CellState {
  readonly policy: string
  readonly cellId: string
}

/**
 * The newest states, of `max` identities at most. An identity has few states, so a text of policy, cell and identity would cost
 * more than a search among them.
 */
export class StatesByIdentity<State extends CellState> {
  readonly #max: number
  readonly #byIdentity = new Map<string, readonly State[]>()

  constructor(max: number) {
    this.#max = max
  }

  get isEmpty(): boolean {
    return this.#byIdentity.size === 0
  }

  find(policy: string, cellId: string, identity: string): State | undefined {
    const states = this.isEmpty ? undefined : this.#byIdentity.get(identity)
    if (states) for (const state of states) if (isOf(state, policy, cellId)) return state
    return undefined
  }

  /** Replaces the state of the same cell. */
  set(identity: string, state: State): void {
    const before = this.#byIdentity.get(identity)
    const others = before?.filter(({ policy, cellId }) => !isOf(state, policy, cellId)) ?? []
    // Deleted first, so that the newest identities are last: a map is in order of insertion.
    if (before) this.#byIdentity.delete(identity)
    this.#byIdentity.set(identity, [...others, state])
    dropOldest(this.#byIdentity, this.#max)
  }

  delete(policy: string, cellId: string, identity: string): void {
    const before = this.isEmpty ? undefined : this.#byIdentity.get(identity)
    if (!before) return
    const others = before.filter((state) => !isOf(state, policy, cellId))
    if (others.length === 0) this.#byIdentity.delete(identity)
    else if (others.length < before.length) this.#byIdentity.set(identity, others)
  }

  deleteAll(identity: string): void {
    this.#byIdentity.delete(identity)
  }

  clear(): void {
    this.#byIdentity.clear()
  }
}

function isOf(state: CellState, policy: string, cellId: string): boolean {
  return state.policy === policy && state.cellId === cellId
}
