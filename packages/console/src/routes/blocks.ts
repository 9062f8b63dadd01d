import type { BlockEntry, Duration, Store } from '@sluice/core'
import { BANS } from '@sluice/core/store'
import { makeChange } from '../changes.js'
import { byKind, containsAddress, type GivenIdentity, IDENTITY, textOf } from '../identity/identity.js'
import { Problem } from '../problem.js'
import { object, PAGE, type PageBody, POLICY, route } from './route.js'

export const CONFIRMED = {
  type: 'boolean',
  description:
    'Needed where the identity is the address that the request comes from, contains it, or is composed with it.',
} as const

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
    answer: 'Entries, and the cursor of the next page. A page may have no entries before the last one.',
    async run({ console: { store }, body: { bans, ...query } }) {
      const { entries, ...rest } = await blocksIn(store).list(query)
      return { ...rest, entries: bans ? entries.filter(({ ban }) => ban !== undefined) : entries }
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
      const before = await blocks.get(identity, scope)
      const change = {
        by: operator.name,
        action: 'block',
        identity: textOf(identity),
        ...scope,
        before,
        after: { for: duration, reason },
      }
      return makeChange(store, change, async () => {
        await blocks.add(identity, { ...scope, for: durationOf(duration), ...(reason !== undefined && { reason }) })
        return { entry: await blocks.get(identity, scope) }
      })
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
      const identity = byKind(given)
      const scope = policy === undefined ? {} : { policy }
      const blocks = blocksIn(store)
      const before: BlockEntry | undefined = await blocks.get(identity, scope)
      if (!before)
        throw new Problem(
          404,
          policy === undefined ? 'it has no block of every policy' : 'that policy does not block it',
        )
      const change = { by: operator.name, action: 'unblock', identity: textOf(identity), ...scope, before }
      return makeChange(store, change, async () => {
        await blocks.remove(identity, scope)
        return { ended: before }
      })
    },
  }),
]

/** Whoever refuses the network that they come from may refuse themselves. @throws Problem */
export function askFirst(isOwn: boolean, confirmed: boolean | undefined): void {
  if (!isOwn || confirmed) return
  throw new Problem(409, 'your own request comes from there: send confirmed: true to refuse it all the same', {
    confirm: 'own-address',
  })
}

/** @throws Problem */
function blocksIn(store: Store) {
  const blocks = store[BANS]?.blocks
  if (blocks) return blocks
  throw new Problem(501, 'this store cannot list its blocks')
}

function durationOf(text: string): Duration {
  return text === 'forever' ? Number.POSITIVE_INFINITY : (text as Duration)
}
