import type { KeptState, NamedCell, RedisStore } from '@sluice/core'
import { type CalendarWindow, PEEK, type Plan, STRIDE, type StoreResult } from '@sluice/core/store'

/** An identity's use of a limit. */
export interface UsedLimit {
  /** The `name` of the limiter; of a policy of a document, or of a tier, with its name: `api`, `default/api`, `api/free`. */
  readonly policy: string
  readonly algorithm: string
  readonly limit: number
  /** The `ttl` of `concurrency`. */
  readonly windowMs: number
  /** Present for windows of the calendar. */
  readonly calendar?: CalendarWindow
  /** Most units that are admitted at once. */
  readonly capacity: number
  /** These three are absent while the limiter refuses the identity by a block or ban, as it does not read the limits then. */
  readonly used?: number
  readonly remaining?: number
  /** Milliseconds until nothing of it is used. */
  readonly resetAfterMs?: number
}

/** Counts whose limits are unknown: the names of their keys do not show them. */
export interface UnknownLimits {
  readonly policy: string
  readonly key: string
}

/** The limits of an identity, as far as the names of its keys show them. Charges nothing. */
export async function usedLimits(
  store: RedisStore,
  { identity, counts }: KeptState,
): Promise<{ readonly limits: readonly UsedLimit[]; readonly unknown: readonly UnknownLimits[] }> {
  const unknown: UnknownLimits[] = []
  const limits = counts.flatMap(({ policy, cell: key }) => {
    const named = store.cellsOf(key)
    if (named) return [peeked(store, identity, policy, named)]
    unknown.push({ policy, key })
    return []
  })
  return { limits: (await Promise.all(limits)).flat(), unknown }
}

async function peeked(
  store: RedisStore,
  identity: string,
  policy: string,
  named: readonly NamedCell[],
): Promise<UsedLimit[]> {
  const cells = named.map(({ cell }) => cell)
  const plan: Plan = {
    policy,
    cells,
    identities: 1,
    starts: [identity.slice(0, identity.indexOf('=') + 1)],
    reports: cells.flatMap(({ limits }) => limits).length,
  }
  const costs = cells.map(() => 0)
  const result = await store.decide({ op: PEEK, plan, identities: [identity], costs, permitId: '' })
  let at = 0
  return named.flatMap(({ of, cell }) =>
    cell.limits.map(({ algorithm, limit, windowMs, capacity, calendar }) => ({
      policy: of === '' ? policy : `${policy}/${of}`,
      algorithm,
      limit,
      windowMs,
      capacity,
      ...(calendar && { calendar }),
      ...usage(result, STRIDE * at++, capacity),
    })),
  )
}

function usage(
  { block, values, offset }: StoreResult,
  at: number,
  capacity: number,
): Pick<UsedLimit, 'used' | 'remaining' | 'resetAfterMs'> {
  if (block) return {}
  const remaining = values[offset + at] as number
  return { used: capacity - remaining, remaining, resetAfterMs: values[offset + at + 2] as number }
}
