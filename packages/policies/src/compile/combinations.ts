import type { MatchedPolicies } from '@sluice/core'
import type { Variant } from './policy.js'

/** Combinations that are kept. Each has a limiter of its own, of some kilobytes. */
const MOST_KEPT = 20_000

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Matched = MatchedPolicies<any>

interface Node {
  readonly next: Map<Variant, Node>
  matched: Matched | undefined
}

/** What policies are together: one object for one combination, so that one limiter is made for it. */
export class Combinations {
  readonly #make: (variants: readonly Variant[]) => Matched
  #alone = new Map<Variant, Matched>()
  #root = emptyNode()
  #size = 0

  constructor(make: (variants: readonly Variant[]) => Matched) {
    this.#make = make
  }

  of(variants: readonly Variant[]): Matched {
    const [first] = variants as [Variant]
    if (variants.length === 1) {
      let matched = this.#alone.get(first)
      if (!matched) {
        this.#grow()
        matched = this.#make(variants)
        this.#alone.set(first, matched)
      }
      return matched
    }
    let node = this.#root
    for (const variant of variants) {
      let next = node.next.get(variant)
      if (!next) {
        next = emptyNode()
        node.next.set(variant, next)
      }
      node = next
    }
    if (!node.matched) {
      node.matched = this.#make(variants)
      this.#grow()
    }
    return node.matched
  }

  /** Begins anew where there are too many: those in use are made again, and find their counts in the store. */
  #grow(): void {
    if (++this.#size <= MOST_KEPT) return
    this.#alone = new Map()
    this.#root = emptyNode()
    this.#size = 1
  }
}

function emptyNode(): Node {
  return { next: new Map(), matched: undefined }
}
