import type { CalendarWindow } from '../store/algorithms.js'
import {
  NO_TERMS,
  PEEK,
  PLAIN_CELL,
  type Plan,
  requestOf,
  STRIDE,
  type Store,
  type StoreResult,
} from '../store/store.js'
import { cellsNamed, type NamedCell } from './cell-names.js'

/** Counts that a store holds of an identity: names of policies, each with the name of a cell, or of cells that share a key. */
export interface StoredCounts {
  /** As text, `kind=value`. */
  readonly identity: string
  readonly counts: readonly { readonly policy: string; readonly cell: string }[]
}

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
  store: Pick<Store, 'decide'>,
  { identity, counts }: StoredCounts,
): Promise<{ readonly limits: readonly UsedLimit[]; readonly unknown: readonly UnknownLimits[] }> {
  const unknown: UnknownLimits[] = []
  const limits = counts.flatMap(({ policy, cell: key }) => {
    const named = cellsNamed(key)
    if (named) return [peeked(store, identity, policy, named)]
    unknown.push({ policy, key })
    return []
  })
  return { limits: (await Promise.all(limits)).flat(), unknown }
}

async function peeked(
  store: Pick<Store, 'decide'>,
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
    ...NO_TERMS,
  }
  const costs = cells.map(() => 0)
  const result = await store.decide(requestOf(PEEK, plan, [identity], costs))
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

/** Whether it is a count of a limiter of this name, or of a document's policy of this name. The key begins with the name. */
export function isCountOf({ policy, cell }: StoredCounts['counts'][number], name: string): boolean {
  const [, ofDocument] = /^([\w-]+)(?:\.[\w-]+)?\//.exec(cell) ?? []
  return [policy, ofDocument, `${policy}/${ofDocument}`].includes(name)
}

/** Resets counts by their names, also of policies that this process does not have. */
export async function resetCounts(store: Pick<Store, 'reset'>, { identity, counts }: StoredCounts): Promise<void> {
  for (const policy of new Set(counts.map((each) => each.policy))) {
    const ofPolicy = counts.filter((each) => each.policy === policy)
    await store.reset(planOf(policy, identity, ofPolicy), [identity])
  }
}

/** Only the parts that name keys: their contents do not matter. */
function planOf(policy: string, identity: string, counts: StoredCounts['counts']): Plan {
  return {
    policy,
    cells: counts.map(({ cell }) => ({ ...PLAIN_CELL, kernel: 'counter', id: cell, params: [0, 1, 0, 0], limits: [] })),
    identities: 1,
    starts: [identity.slice(0, identity.indexOf('=') + 1)],
    reports: 0,
    ...NO_TERMS,
    // The ids of its charges are unknown from then on, where its limiter keeps any.
    keeps: { forMs: 1 },
  }
}
