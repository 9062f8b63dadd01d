/** The state of an identity in a cell of a policy. */
export interface CellState {
  readonly policy: string
  readonly cellId: string
}

/** An identity has few states, so a text of policy, cell and identity would cost more than a search among them. */
type Generation<State> = Map<string, State[]>

/**
 * The states of the identities that were used last: `kept` of them at least, and twice as many at most. Identities of about the
 * same time are dropped together, as an order of all identities would change with each use.
 */
export class StatesByIdentity<State extends CellState> {
  readonly #kept: number
  #young: Generation<State> = new Map()
  #old: Generation<State> = new Map()

  constructor(kept: number) {
    this.#kept = kept
  }

  get isEmpty(): boolean {
    return this.#young.size === 0 && this.#old.size === 0
  }

  /** A search counts as a use. */
  find(policy: string, cellId: string, identity: string): State | undefined {
    const states = this.#statesOf(identity)
    return states?.[indexOf(states, policy, cellId)]
  }

  /** Replaces the state of the same cell. */
  set(identity: string, state: State): void {
    const states = this.#statesOf(identity)
    if (!states) {
      this.#add(identity, [state])
      return
    }
    const i = indexOf(states, state.policy, state.cellId)
    states[i < 0 ? states.length : i] = state
  }

  delete(policy: string, cellId: string, identity: string): void {
    const states = this.#statesOf(identity)
    const i = states ? indexOf(states, policy, cellId) : -1
    if (!states || i < 0) return
    states.splice(i, 1)
    if (states.length === 0) this.#young.delete(identity)
  }

  deleteAll(identity: string): void {
    this.#young.delete(identity)
    this.#old.delete(identity)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }

  /** The states of an identity, which is in the young generation from now on. */
  #statesOf(identity: string): State[] | undefined {
    const young = this.#young.get(identity)
    if (young || this.#old.size === 0) return young
    const old = this.#old.get(identity)
    if (!old) return undefined
    this.#old.delete(identity)
    this.#add(identity, old)
    return old
  }

  #add(identity: string, states: State[]): void {
    if (this.#young.size >= this.#kept) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(identity, states)
  }
}

function indexOf(states: readonly CellState[], policy: string, cellId: string): number {
  for (let i = 0; i < states.length; i++) {
    const state = states[i] as CellState
    if (state.policy === policy && state.cellId === cellId) return i
  }
  return -1
}
