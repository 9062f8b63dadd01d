import { fieldOf, type IndexEntry } from '../blocks/entry.js'
import type { KnownBlock } from '../blocks/mirror.js'
import type { BlockQuestion, MirroredBlocks } from '../blocks/mirrored-blocks.js'
import { probeKey } from '../health/probing.js'
import type { RedisBase } from '../slots/base.js'

interface Known extends RedisBase {
  readonly mirrored: MirroredBlocks
}

/** A block in force. */
export interface HoldingBlock {
  readonly entry: KnownBlock
  /** `mirror` if Redis could not confirm the block. */
  readonly source: 'mirror' | undefined
}

/**
 * Finds the known block that refuses a request, after Redis has confirmed it: Redis may have a later state, or may have
 * lost the block. During an outage, this process's mirror decides alone.
 */
export async function confirmedBlock(known: Known, question: BlockQuestion): Promise<HoldingBlock | undefined> {
  const { mirrored } = known
  const confirmed = new Set<string>()
  for (let entry = mirrored.find(question); entry; entry = mirrored.find(question)) {
    const field = fieldOf(entry.policy, entry.identity)
    if (confirmed.has(field)) return { entry, source: undefined }
    if (!(await isConfirmed(known, entry))) return { entry, source: 'mirror' }
    confirmed.add(field)
  }
  return undefined
}

/** Confirms an entry with Redis. Returns whether that was possible. */
async function isConfirmed({ mirrored, slots, breaker, prefix }: Known, entry: IndexEntry): Promise<boolean> {
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
