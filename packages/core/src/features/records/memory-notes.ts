import { randomBytes } from 'node:crypto'
import type { SharedNotes } from '../../store/shared-notes.js'
import { dropOldest } from '../../util/drop-oldest.js'
import { REFUSALS_LIFE_MS } from './recent-refusals.js'

/** Texts and ids beyond, the oldest are dropped. */
const MAX_TEXTS = 10_000
const MAX_IDS = 100_000

interface Ending<Value> {
  readonly value: Value
  readonly until: number
}

/** A random id of an identity: 96 bits. */
export function randomId(): string {
  return randomBytes(12).toString('base64url')
}

/** The notes of this process alone. */
export class MemoryNotes implements SharedNotes {
  readonly now: () => number
  readonly #texts = new Map<string, Ending<string>>()
  readonly #ids = new Map<string, Ending<string>>()
  readonly #identities = new Map<string, string>()
  readonly #forgotten = new Map<string, number>()
  readonly #members = new Set<string>()

  constructor(now: () => number) {
    this.now = now
  }

  async get(names: readonly string[]): Promise<(string | undefined)[]> {
    return names.map((name) => this.#present(this.#texts, name))
  }

  async set(name: string, text: string, forMs: number): Promise<void> {
    this.#texts.delete(name)
    this.#texts.set(name, { value: text, until: this.now() + forMs })
    dropEnded(this.#texts, this.now(), MAX_TEXTS)
  }

  async join(member: string): Promise<void> {
    this.#members.add(member)
  }

  async members(): Promise<readonly string[]> {
    return [...this.#members]
  }

  async idsOf(identities: readonly string[], forMs: number): Promise<readonly string[]> {
    const until = this.now() + forMs
    return identities.map((identity) => {
      const known = this.#ids.get(identity)
      const id = known && known.until > this.now() ? known.value : randomId()
      this.#ids.delete(identity)
      this.#ids.set(identity, { value: id, until: Math.max(known?.until ?? 0, until) })
      this.#identities.set(id, identity)
      if (this.#ids.size > MAX_IDS) this.#dropIds()
      return id
    })
  }

  async identitiesOf(ids: readonly string[]): Promise<readonly (string | undefined)[]> {
    return ids.map((id) => {
      const identity = this.#identities.get(id)
      return identity !== undefined && this.#present(this.#ids, identity) === id ? identity : undefined
    })
  }

  async forgottenSince(at: number): Promise<((identity: string) => boolean) | undefined> {
    dropEnded(this.#forgotten, this.now() - REFUSALS_LIFE_MS, MAX_TEXTS)
    return this.#forgotten.size > 0 ? (identity) => (this.#forgotten.get(identity) ?? 0) > at : undefined
  }

  forget(identity: string): void {
    this.#forgotten.set(identity, this.now())
    const id = this.#ids.get(identity)?.value
    this.#ids.delete(identity)
    if (id !== undefined) this.#identities.delete(id)
  }

  clear(): void {
    for (const each of [this.#texts, this.#ids, this.#identities, this.#forgotten]) each.clear()
  }

  #present(all: ReadonlyMap<string, Ending<string>>, name: string): string | undefined {
    const found = all.get(name)
    return found && found.until > this.now() ? found.value : undefined
  }

  #dropIds(): void {
    dropEnded(this.#ids, this.now(), MAX_IDS)
    for (const [id, identity] of [...this.#identities]) if (!this.#ids.has(identity)) this.#identities.delete(id)
  }
}

/** Drops what has ended, as far as it is at the front, and the oldest beyond a number. */
function dropEnded(all: Map<string, Ending<unknown> | number>, now: number, max: number): void {
  for (const [name, ending] of all) {
    if ((typeof ending === 'number' ? ending : ending.until) > now) break
    all.delete(name)
  }
  dropOldest(all, max)
}
