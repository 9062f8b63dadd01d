import type { Duration, Store } from '@sluice/core'
import { blockBy, type RecordedBlocks, unblockBy } from '@sluice/core/internal'
import { BANS, CHANGES } from '@sluice/core/store'
import { withAuthors } from '../block-authors.js'
import { byKind, containsAddress, type GivenIdentity, IDENTITY } from '../identity/identity.js'
import { Problem } from '../problem.js'
import { blockPlan } from './block-plan.js'
import { askFirst, CONFIRMED } from './confirmed.js'
import { object, PAGE, type PageBody, POLICY, route } from './route.js'

interface BlockBody {
  readonly identity: GivenIdentity
  readonly policy?: string
  readonly for: string
  readonly reason?: string
  readonly confirmed?: boolean
}

export const BLOCKS = [
  route<PageBody & { readonly policy?: string; readonly bans?: boolean }>({
    method: 'POST',
    path: '/api/blocks',
    id: 'blocks',
    summary: 'A page of the blocks and bans in force, with strikes and rungs, in no order.',
    may: 'read',
    body: object({
      ...PAGE,
      policy: { ...POLICY, description: 'Those of this policy, and those of every policy.' },
      bans: { type: 'boolean', description: 'Bans alone, without blocks made by hand.' },
    }),
    answer:
      'Entries, with by of blocks that the last 1,000 changes name, and the cursor of the next page. A page may have no entries before the last one.',
    async run({ console: { store }, body: { bans, ...query } }) {
      const { entries, ...rest } = await blocksIn(store).blocks.list(query)
      const wanted = bans ? entries.filter(({ ban }) => ban !== undefined) : entries
      return { ...rest, entries: await withAuthors(store, wanted) }
    },
  }),
  route<BlockBody>({
    method: 'POST',
    path: '/api/block',
    id: 'block',
    summary: 'Blocks an identity, or a network of addresses. Replaces the block that it has.',
    may: 'act',
    body: object(
      {
        identity: IDENTITY,
        policy: POLICY,
        for: {
          type: 'string',
          minLength: 1,
          maxLength: 20,
          description: 'A duration such as 30m, 12h or 7d; or forever.',
        },
        reason: { type: 'string', maxLength: 200, description: 'Shown in verdicts.' },
        confirmed: CONFIRMED,
      },
      'identity',
      'for',
    ),
    answer: 'The entry.',
    async run({ console: { store }, operator, ip, body }) {
      const { identity: given, policy, for: duration, reason, confirmed } = body
      const identity = byKind(given)
      const scope = policy === undefined ? {} : { policy }
      const blocks = blocksIn(store)
      askFirst(containsAddress(identity, ip), confirmed)
      const block = { ...scope, for: durationOf(duration), ...(reason !== undefined && { reason }) }
      return { entry: await blockBy(blocks, operator.name, identity, block) }
    },
  }),
  route<Pick<BlockBody, 'identity' | 'policy'>>({
    method: 'POST',
    path: '/api/block/plan',
    id: 'blockPlan',
    summary: 'The effect that a block would have: whom it refuses, and who is admitted all the same. Changes nothing.',
    may: 'read',
    body: object({ identity: IDENTITY, policy: POLICY }, 'identity'),
    answer:
      'The identity as it is counted, the block that it replaces, whether it is your own address, lists that admit it, and its recorded refusals and traffic.',
    run(call) {
      blocksIn(call.console.store)
      return blockPlan(call)
    },
  }),
  route<Pick<BlockBody, 'identity' | 'policy'>>({
    method: 'POST',
    path: '/api/unblock',
    id: 'unblock',
    summary: 'Ends the block or ban of an identity, and forgets the strikes and the rung that led to it.',
    may: 'act',
    body: object({ identity: IDENTITY, policy: POLICY }, 'identity'),
    answer: 'The entry that is ended.',
    async run({ console: { store }, operator, body: { identity: given, policy } }) {
      const scope = policy === undefined ? {} : { policy }
      const ended = await unblockBy(blocksIn(store), operator.name, byKind(given), scope)
      if (!ended)
        throw new Problem(
          404,
          policy === undefined ? 'it has no block of every policy' : 'that policy does not block it',
        )
      return { ended }
    },
  }),
]

/** @throws Problem */
function blocksIn(store: Store): RecordedBlocks {
  const blocks = store[BANS]?.blocks
  if (blocks) return { blocks, changes: store[CHANGES] }
  throw new Problem(501, 'this store cannot list its blocks')
}

function durationOf(text: string): Duration {
  return text === 'forever' ? Number.POSITIVE_INFINITY : (text as Duration)
}
