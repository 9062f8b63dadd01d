import { checkedAdd } from '../../blocks/given-blocks.js'
import type { AddBlockOptions, BlockScope, StoreBlocks } from '../../store/blocks.js'
import type { StoreChanges } from '../../store/changes.js'
import type { BlockEntry } from '../../store/entries.js'
import type { IdentityByKind } from '../../store/identity.js'
import { ownFieldsOf } from '../../util/property-of.js'

/** The blocks of a store, and its log of changes where it keeps one. */
export interface RecordedBlocks {
  readonly blocks: StoreBlocks
  readonly changes: StoreChanges | undefined
}

/**
 * Blocks an identity, with an entry of the change.
 *
 * @param by who does it
 * @returns the block, if it still holds
 * @throws as `blocks.add` and `changes.record`
 */
export async function blockBy(
  { blocks, changes }: RecordedBlocks,
  by: string,
  identity: IdentityByKind,
  options: AddBlockOptions,
): Promise<BlockEntry | undefined> {
  const { policy, ...after } = ownFieldsOf(options)
  const scope = scopeOf(policy)
  // A mistake changes nothing, and has no entry.
  checkedAdd('blocks.add', options)
  const before = await blocks.get(identity, scope)
  const change = { by, action: 'block', ...scope, identity, before: stateOf(before), after: plain(after) }
  const add = () => blocks.add(identity, options)
  await (changes?.record(change, add) ?? add())
  return blocks.get(identity, scope)
}

/** Ends a block or ban, with an entry of the change. Otherwise as `blockBy`. Resolves to what it ended, if there was one. */
export async function unblockBy(
  { blocks, changes }: RecordedBlocks,
  by: string,
  identity: IdentityByKind,
  scope: BlockScope = {},
): Promise<BlockEntry | undefined> {
  const before = await blocks.get(identity, scope)
  if (!before) return undefined
  const change = { by, action: 'unblock', ...scopeOf(scope.policy), identity, before: stateOf(before) }
  const remove = () => blocks.remove(identity, scope)
  await (changes?.record(change, remove) ?? remove())
  return before
}

function scopeOf(policy: string | undefined): BlockScope {
  return policy === undefined ? {} : { policy }
}

/** Without the identity, which the entry has by itself. */
function stateOf(entry: BlockEntry | undefined): object | undefined {
  if (!entry) return undefined
  const { policy: _policy, kind: _kind, value: _value, ...state } = entry
  return state
}

/** JSON has no infinite numbers. */
function plain({ for: duration, ...rest }: Omit<AddBlockOptions, 'policy'>): object {
  return { for: duration === Number.POSITIVE_INFINITY ? 'ever' : duration, ...rest }
}
