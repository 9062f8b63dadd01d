/** How many keys a limiter remembers to have reset. */
const MOST = 10_000

/**
 * Which keys of a limiter were reset when, so that a charge from before is not given back after: it would be somebody
 * else's. A receipt alone does not tell, as what was charged since may look the same.
 *
 * Bounded: of keys that are forgotten all charges from before the last of those resets count as gone.
 */
export class Resets {
  readonly #numbers = new Map<string, number>()
  #count = 0
  #forgottenUpTo = 0

  /** How many there were. What is charged from now on goes by this number. */
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
