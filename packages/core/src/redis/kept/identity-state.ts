import { identityText } from '../../blocks/given-blocks.js'
import type { RefusalLog } from '../../offenders/refusal-log.js'
import type { IdentityByKind } from '../../store/identity.js'
import type { Outbox } from '../batching/outbox.js'
import type { HeldBlocks } from '../blocks/held-blocks.js'
import type { RedisLists } from '../blocks/redis-lists.js'
import type { BlockChanges } from '../changes/block-changes.js'
import type { Changes } from '../changes/changes.js'
import { keyStart, strikesSuffix } from '../scripts/keys.js'
import { readKeys } from '../scripts/run.js'
import { forgetKeys, restsOfKeys } from '../scripts/walk-keys.js'
import type { RedisBase } from '../slots/base.js'
import { blocksFor, type KeptState, namesIn, strikesIn } from './kept-state.js'
import type { RedisRefusals } from './redis-refusals.js'

export interface IdentityParts extends RedisBase {
  readonly now: () => number
  readonly outbox: Outbox
  readonly changes: Changes
  readonly held: HeldBlocks
  readonly blockChanges: BlockChanges
  readonly lists: RedisLists
  readonly refusals: RefusalLog | undefined
  readonly refusalSlices: RedisRefusals
}

/** Erases what Redis keeps of an identity: looks through all keys of the server. */
export async function forget(state: IdentityParts, given: IdentityByKind): Promise<void> {
  const { connection, timeoutMs, outbox, changes, blockChanges, lists, refusals, refusalSlices } = state
  const identity = identityText('forget', given)
  await changes.make({ kind: 'forget', identity }, async () => {
    // First of all, or a process that holds a block or an entry of a list might write it again.
    await blockChanges.erase(identity)
    await lists.forget(identity)
    outbox.flush()
    await forgetKeys(connection, timeoutMs, startOfKeys(state, identity), '')
    refusals?.forget(identity)
    await forgetKeys(connection, timeoutMs, refusalSlices.start, identity)
  })
}

/** What Redis keeps of an identity: looks through all keys of the server. */
export async function kept(state: IdentityParts, given: IdentityByKind): Promise<KeptState> {
  const { connection, prefix, timeoutMs, now, held, lists } = state
  const identity = identityText('kept', given)
  const { counts, strikes } = namesIn(await restsOfKeys(connection, timeoutMs, startOfKeys(state, identity)))
  const keys = strikes.map((policy) => keyStart(prefix, identity) + strikesSuffix(policy))
  const records = await readKeys(connection, timeoutMs, keys)
  return {
    identity,
    counts,
    strikes: strikes.flatMap((policy, i) => strikesIn(policy, records[i]) ?? []),
    blocks: await blocksFor(identity, now(), held.all()),
    lists: await lists.namesFor(identity),
  }
}

/** What all keys of an identity begin with. */
function startOfKeys({ prefix }: RedisBase, identity: string): string {
  return `${keyStart(prefix, identity)}}:`
}
