/** How many reset keys a limiter remembers at most. */
const MOST = 10_000

/**
 * Which keys of a limiter were reset when, so that a charge from before a reset is not refunded after it: that would
 * refund other charges. A receipt does not show the reset, as the charges since may look the same.
 *
 * Bounded: of keys that are forgotten all charges from before the last of those resets count as gone.
 */
export class Resets {
  readonly #numbers = new Map<string, number>()
  #count = 0
  #forgottenUpTo = 0

  /** How many resets there were. Charges carry the number at their decision. */
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
      if (this.#numbers.size <= MOST) break
      this.#numbers.delete(name)
      this.#forgottenUpTo = number
    }
  }

  /** Whether a key was reset after so many resets. */
  wasResetAfter(count: number, tier: string | undefined, identity: string): boolean {
    return (
      count < this.#count && (count < this.#forgottenUpTo || (this.#numbers.get(nameOf(tier, identity)) ?? 0) > count)
    )
  }
}

function nameOf(tier: string | undefined, identity: string): string {
  return tier === undefined ? identity : `${tier}\n${identity}`
}
