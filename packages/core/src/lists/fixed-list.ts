import type { List, ListedIdentity, ListMatch } from '../store/list.js'
import type { DataMatcher } from './data-matcher.js'

/** A list that never changes. */
export class FixedList implements List {
  readonly name: string
  readonly kinds: readonly string[]
  readonly version = 1
  readonly #matcher: DataMatcher

  constructor(name: string, matcher: DataMatcher) {
    this.name = name
    this.kinds = matcher.kinds
    this.#matcher = matcher
  }

  match(identity: ListedIdentity): ListMatch | undefined {
    return this.#matcher.match(identity)
  }

  async ready(): Promise<void> {}

  async close(): Promise<void> {}
}
