import { fieldOf, type IndexEntry } from '../blocks/entry.js'
import type { BlockQuestion, HeldBlocks } from '../blocks/held-blocks.js'
import { probeKey } from '../health/probing.js'
import type { RedisBase } from '../slots/base.js'

interface Known extends RedisBase {
  readonly held: HeldBlocks
}

/** A block that holds. */
export interface HoldingBlock {
  readonly entry: IndexEntry
  /** Present where Redis could not be asked. */
  readonly source?: 'mirror'
}

/**
 * Which block that this process knows refuses, once Redis was asked, which may know better, or have lost it; by what this
 * process knows alone where Redis is away.
 */
export async function stillHeld(known: Known, question: BlockQuestion): Promise<HoldingBlock | undefined> {
  const { held } = known
  const confirmed = new Set<string>()
  for (let entry = held.find(question); entry; entry = held.find(question)) {
    const field = fieldOf(entry.policy, entry.identity)
    if (confirmed.has(field)) return { entry }
    if (!(await isAsked(known, entry))) return { entry, source: 'mirror' }
    confirmed.add(field)
  }
  return undefined
}

/** Whether Redis could be asked for an entry. */
async function isAsked({ held, slots, breaker, prefix }: Known, entry: IndexEntry): Promise<boolean> {
  const slot = slots.of(entry.identity)
  if (breaker.causeFor(slot)) return false
  try {
    await held.confirm(entry)
    return true
  } catch (error) {
    breaker.failed(slot, error as Error, probeKey(prefix, entry.identity))
    return false
  }
}
