import type { BlockEntry, ChangeEntry, Store } from '@sluice/core'
import { CHANGES } from '@sluice/core/store'

/** The newest changes, in which those are looked for that made a block. */
const MAX_CHANGES = 1000
/** A block begins as soon after the entry of its change, in ms. */
const SOON_MS = 60_000

interface BlockBy extends BlockEntry {
  /** Who made it by hand. Absent where the log of changes does not know. */
  readonly by?: string
}

/** Blocks with who made them, as far as the last 1,000 changes say. Code and strikes leave no change. */
export async function withAuthors(store: Store, blocks: readonly BlockEntry[]): Promise<readonly BlockBy[]> {
  const changes = store[CHANGES]
  if (!changes || blocks.every(({ ban }) => ban)) return blocks
  const { entries } = await changes.list({ max: MAX_CHANGES })
  const made = new Map<string, ChangeEntry[]>()
  for (const change of entries.filter(({ action, state }) => action === 'block' && state !== 'failed')) {
    const key = keyOf(change)
    made.set(key, [...(made.get(key) ?? []), change])
  }
  return blocks.map((block) => {
    const isOf = ({ at }: ChangeEntry) => at <= block.since && block.since - at < SOON_MS
    const by = block.ban ? undefined : made.get(keyOf(block))?.find(isOf)?.by
    return by ? { ...block, by } : block
  })
}

const keyOf = ({ policy = '', kind, value }: Pick<ChangeEntry, 'policy' | 'kind' | 'value'>): string =>
  `${policy} ${kind}=${value}`
