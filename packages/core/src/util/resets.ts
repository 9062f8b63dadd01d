/** Maximum of reset keys that a limiter remembers. */
const MAX_RESETS = 10_000

/**
 * Remembers the resets of a limiter's keys, so that a charge from before a reset is not refunded after it: that would
 * refund other charges. A receipt does not show the reset, as later charges may look the same.
 *
 * The memory is bounded. For forgotten keys, all charges from before the last forgotten reset count as reset.
 */
export class Resets {
  readonly #numbers = new Map<string, number>()
  #count = 0
  #forgottenUpTo = 0

  /** The number of resets. Charges carry the number at their decision. */
  get count(): number {
    return this.#count
  }

  note(tier: string | undefined, identities: readonly string[]): void {
    this.#count++
    for (const identity of identities) {
      const name = nameOf(tier, identity)
      this.#numbers.delete(name)
      this.#numbers.set(name, this.#count)
    }
    for (const [name, number] of this.#numbers) {
      if (this.#numbers.size <= MAX_RESETS) break
      this.#numbers.delete(name)
      this.#forgottenUpTo = number
    }
  }

  /** Whether a key was reset after the first `count` resets. */
  wasResetAfter(count: number, tier: string | undefined, identity: string): boolean {
    return (
      count < this.#count && (count < this.#forgottenUpTo || (this.#numbers.get(nameOf(tier, identity)) ?? 0) > count)
    )
  }
}

function nameOf(tier: string | undefined, identity: string): string {
  return tier === undefined ? identity : `${tier}\n${identity}`
}
