import { type ChangeKeeper, type ChangesKept, type KeptChange, MAX_CHANGES_KEPT } from './change-log.js'

/** The entries of changes in this process. */
export class MemoryChanges implements ChangeKeeper {
  readonly #now: () => number
  /** The oldest first. */
  #kept: KeptChange[] = []
  #last = 0

  constructor(now: () => number) {
    this.#now = now
  }

  add(text: string): KeptChange {
    const added: KeptChange = { number: ++this.#last, at: this.#now(), state: 'begun', text }
    this.#kept.push(added)
    if (this.#kept.length > MAX_CHANGES_KEPT) this.#kept.shift()
    return added
  }

  replace(before: KeptChange, after: KeptChange): boolean {
    const index = before.number - (this.#kept[0]?.number ?? 0)
    const found = this.#kept[index]
    if (found?.text !== before.text || found.state !== before.state) return false
    this.#kept[index] = after
    return true
  }

  page(below: number | undefined, max: number): ChangesKept {
    const end = below === undefined ? this.#kept.length : Math.max(0, below - (this.#kept[0]?.number ?? 0))
    const start = Math.max(0, end - max)
    const kept = this.#kept.slice(start, end).reverse()
    return { kept, next: start === 0 ? undefined : kept.at(-1)?.number }
  }

  clear(): void {
    this.#kept = []
  }
}
