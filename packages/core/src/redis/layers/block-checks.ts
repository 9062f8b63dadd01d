import { fieldOf, type IndexEntry } from '../blocks/entry.js'
import type { BlockQuestion, MirroredBlocks } from '../blocks/mirrored-blocks.js'
import { probeKey } from '../health/probing.js'
import type { RedisBase } from '../slots/base.js'

interface Known extends RedisBase {
  readonly mirrored: MirroredBlocks
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
export async function confirmedBlock(known: Known, question: BlockQuestion): Promise<HoldingBlock | undefined> {
  const { mirrored } = known
  const confirmed = new Set<string>()
  for (let entry = mirrored.find(question); entry; entry = mirrored.find(question)) {
    const field = fieldOf(entry.policy, entry.identity)
    if (confirmed.has(field)) return { entry }
    if (!(await isAsked(known, entry))) return { entry, source: 'mirror' }
    confirmed.add(field)
  }
  return undefined
}

/** Whether Redis could be asked for an entry. */
async function isAsked({ mirrored, slots, breaker, prefix }: Known, entry: IndexEntry): Promise<boolean> {
  const slot = slots.of(entry.identity)
  if (breaker.causeFor(slot)) return false
  try {
    await mirrored.confirm(entry)
    return true
  } catch (error) {
    breaker.failed(slot, error as Error, probeKey(prefix, entry.identity))
    return false
  }
}
