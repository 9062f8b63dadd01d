import type { BlockPlace } from '../../blocks/given-blocks.js'
import type { BanEvictedEvent, BlockEvent, UnblockEvent } from '../../store/events.js'
import { identityIn } from '../../store/identity.js'
import { type BlockReport, EVERY_POLICY } from '../../store/store.js'
import { isForEver } from '../../util/duration.js'
import type { Audience } from '../../util/listeners.js'

/** Emits the event of a manual block. */
export function emitBlock(
  listeners: Audience<{ block: BlockEvent }>,
  place: BlockPlace,
  forMs: number,
  reason: string,
): void {
  if (!listeners.hasListeners('block')) return
  listeners.send('block', { ...shown(place), forMs: isForEver(forMs) ? Number.POSITIVE_INFINITY : forMs, reason })
}

/** Emits the event of a manual unblock. */
export function emitUnblock(listeners: Audience<{ unblock: UnblockEvent }>, place: BlockPlace): void {
  if (listeners.hasListeners('unblock')) listeners.send('unblock', shown(place))
}

/** Emits the event of a ban that ends early. */
export function emitBanEvicted(
  listeners: Audience<{ 'ban-evicted': BanEvictedEvent }>,
  place: BlockPlace,
  rung: number,
  remainingMs: number,
): void {
  if (listeners.hasListeners('ban-evicted')) listeners.send('ban-evicted', { ...shown(place), rung, remainingMs })
}

function shown({ policy, identity }: BlockPlace): UnblockEvent {
  return { policy: policy === EVERY_POLICY ? undefined : policy, identity: identityIn(identity) }
}

/** Whether a strike has just begun this ban. */
export function hasBegun(block: BlockReport | undefined): block is BlockReport {
  return block?.hasBegun === true
}
