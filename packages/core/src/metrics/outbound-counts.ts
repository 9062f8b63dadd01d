import type { OutboundEvent } from '../limiter/events.js'
import type { OutboundCounts } from './snapshot.js'

/** Services name their limits themselves. Those beyond are left out. */
const MAX_LIMITS = 20

/** Counts the responses of services that a policy limits requests to. */
export class OutboundCounters {
  readonly #responses = { accepted: 0, refused: 0, final: 0, failed: 0, unsent: 0 }
  readonly #limits = new Map<string, OutboundCounts['limits'][number]>()
  #heldUntil = 0
  #areAny = false

  add({ outcome, holdMs, limits }: OutboundEvent): void {
    this.#areAny = true
    this.#responses[outcome]++
    const now = Date.now()
    if (holdMs > 0) this.#heldUntil = Math.max(this.#heldUntil, now + holdMs)
    for (const { name, unit, limit, remaining, resetAfterMs } of limits) {
      if (!this.#limits.has(name) && this.#limits.size >= MAX_LIMITS) continue
      const resetAt = resetAfterMs === undefined ? undefined : now + resetAfterMs
      this.#limits.set(name, { name, unit, limit, remaining, resetAt, toldAt: now })
    }
  }

  read(policy: string): OutboundCounts[] {
    if (!this.#areAny) return []
    return [{ policy, ...this.#responses, heldUntil: this.#heldUntil, limits: [...this.#limits.values()] }]
  }
}
