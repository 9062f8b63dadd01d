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

  find(policy: string, cellId: string, identity: string): State | undefined {
    if (this.isEmpty) return undefined
    const states = this.#young.get(identity) ?? this.#old.get(identity)
    return states && among(states, policy, cellId)
  }

  /** Like `find`, and counts as a use. */
  use(policy: string, cellId: string, identity: string): State | undefined {
    const states = this.#young.get(identity) ?? this.#renewed(identity)
    return states && among(states, policy, cellId)
  }

  /** Replaces the state of the same cell. */
  set(identity: string, state: State): void {
    const states = this.#young.get(identity) ?? this.#renewed(identity)
    if (!states) {
      this.#add(identity, [state])
      return
    }
    const i = indexOf(states, state.policy, state.cellId)
    if (i < 0) states.push(state)
    else states[i] = state
  }

  delete(policy: string, cellId: string, identity: string): void {
    const generation = this.#young.has(identity) ? this.#young : this.#old
    const states = generation.get(identity)
    const i = states ? indexOf(states, policy, cellId) : -1
    if (!states || i < 0) return
    if (states.length === 1) generation.delete(identity)
    else states.splice(i, 1)
  }

  deleteAll(identity: string): void {
    this.#young.delete(identity)
    this.#old.delete(identity)
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }

  /** The states of an identity of the old generation, in the young one from now on. */
  #renewed(identity: string): State[] | undefined {
    const states = this.#old.size > 0 ? this.#old.get(identity) : undefined
    if (!states) return undefined
    this.#old.delete(identity)
    this.#add(identity, states)
    return states
  }

  #add(identity: string, states: State[]): void {
    if (this.#young.size >= this.#kept) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(identity, states)
  }
}

function among<State extends CellState>(states: readonly State[], policy: string, cellId: string): State | undefined {
  for (const state of states) if (state.policy === policy && state.cellId === cellId) return state
  return undefined
}

function indexOf(states: readonly CellState[], policy: string, cellId: string): number {
  return states.findIndex((state) => state.policy === policy && state.cellId === cellId)
}
