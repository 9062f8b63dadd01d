import type { MatchedPolicies } from '@sluice/core'
import { getOrInsert } from '@sluice/core/internal'
import type { Variant } from './policy.js'

/** Combinations in memory. Each has a limiter of its own, of some kilobytes. */
const MAX_COMBINATIONS = 20_000

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Matched = MatchedPolicies<any>

interface Node {
  readonly next: Map<Variant, Node>
  matched: Matched | undefined
}

/** Matches of several policies together. There is one object for each combination, so that one limiter is made for it. */
export class Combinations {
  readonly #make: (variants: readonly Variant[]) => Matched
  /** Variants with a match of their own. */
  #alone: Variant[] = []
  #root = emptyNode()
  #size = 0

  constructor(make: (variants: readonly Variant[]) => Matched) {
    this.#make = make
  }

  /** The match of a policy that applies alone, as most do. */
  ofOne(variant: Variant): Matched {
    if (variant.alone) return variant.alone
    this.#grow()
    variant.alone = this.#make([variant])
    this.#alone.push(variant)
    return variant.alone
  }

  of(variants: readonly Variant[]): Matched {
    if (variants.length === 1) return this.ofOne(variants[0] as Variant)
    let node = this.#root
    for (const variant of variants) {
      const next = getOrInsert(node.next, variant, emptyNode)
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
    if (++this.#size <= MAX_COMBINATIONS) return
    for (const variant of this.#alone) variant.alone = undefined
    this.#alone = []
    this.#root = emptyNode()
    this.#size = 1
  }
}

function emptyNode(): Node {
  return { next: new Map(), matched: undefined }
}
