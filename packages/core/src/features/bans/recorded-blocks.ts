import type { AddBlockOptions, BlockScope, StoreBlocks } from '../../store/blocks.js'
import type { StoreChanges } from '../../store/changes.js'
import type { BlockEntry } from '../../store/entries.js'
import type { IdentityByKind } from '../../store/identity.js'

/** A store whose changes have entries. */
interface Recording {
  readonly blocks: StoreBlocks
  readonly changes: StoreChanges
}

/**
 * Blocks an identity, with an entry of the change.
 *
 * @param by who does it
 * @throws as `blocks.add` and `changes.record`
 */
export async function blockBy(
  { blocks, changes }: Recording,
  by: string,
  identity: IdentityByKind,
  options: AddBlockOptions,
): Promise<void> {
  const { policy, ...after } = options
  const before = await blocks.get(identity, scopeOf(policy))
  const change = { by, action: 'block', ...scopeOf(policy), identity, before: stateOf(before), after: plain(after) }
  await changes.record(change, () => blocks.add(identity, options))
}

/** Ends a block or ban, with an entry of the change. Otherwise as `blockBy`. */
export async function unblockBy(
  { blocks, changes }: Recording,
  by: string,
  identity: IdentityByKind,
  scope: BlockScope = {},
): Promise<void> {
  const before = await blocks.get(identity, scope)
  const change = { by, action: 'unblock', ...scopeOf(scope.policy), identity, before: stateOf(before) }
  await changes.record(change, () => blocks.remove(identity, scope))
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
