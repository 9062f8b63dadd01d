import type { LiveFigures } from '@sluice/core/internal'
import type { OutboundRow, QuotaRow } from './answers.js'

const MAX_POLICIES = 128
const MAX_QUOTAS = 256

type Quota = QuotaRow & Pick<OutboundRow, 'policy'>

/** Calls of processes to other services. */
export class Outbound {
  readonly #now: number
  /** For how long each policy is held. */
  readonly #holds = new Map<string, number>()
  readonly #quotas = new Map<string, Quota>()

  /** @param now of the store, in ms */
  constructor(now: number) {
    this.#now = now
  }

  add(ageMs: number, { holds = [], quotas = [] }: LiveFigures): void {
    const at = this.#now - ageMs
    for (const [policy, forMs] of holds) {
      if (hasRoom(this.#holds, policy, MAX_POLICIES)) {
        this.#holds.set(policy, Math.max(this.#holds.get(policy) ?? 0, at + forMs))
      }
    }
    for (const [policy, limit, unit, units, left, resetAfterMs, toldBeforeMs] of quotas) {
      const key = JSON.stringify([policy, limit])
      const toldAt = at - toldBeforeMs
      if (!hasRoom(this.#quotas, key, MAX_QUOTAS) || toldAt < (this.#quotas.get(key)?.toldAt ?? 0)) continue
      const resetAt = resetAfterMs === null ? null : at + resetAfterMs
      const remaining = resetAt === null || resetAt > this.#now ? left : null
      this.#quotas.set(key, { policy, limit, unit, units, remaining, resetAt, toldAt })
    }
  }

  /** By their names, as the order of processes changes. */
  read(): OutboundRow[] {
    const quotas = sorted(this.#quotas).map(([, quota]) => quota)
    return sorted(this.#holds).map(([policy, until]) => ({
      policy,
      heldUntil: until > this.#now ? until : null,
      quotas: quotas.filter((quota) => quota.policy === policy).map(({ policy, ...quota }) => quota),
    }))
  }
}

function sorted<Value>(all: ReadonlyMap<string, Value>): [string, Value][] {
  return [...all].sort(([one], [other]) => (one < other ? -1 : 1))
}

function hasRoom(all: ReadonlyMap<string, unknown>, key: string, max: number): boolean {
  return all.has(key) || all.size < max
}
