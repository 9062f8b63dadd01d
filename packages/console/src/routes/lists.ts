import type { List, Store, StoreList } from '@sluice/core'
import { listsOfLimiter, propertyOf } from '@sluice/core/internal'
import { LISTS as STORE_LISTS } from '@sluice/core/store'
import { makeChange } from '../changes.js'
import { byKind, containsAddress, type GivenIdentity, IDENTITY, textOf } from '../identity/identity.js'
import type { CheckedOptions } from '../options.js'
import { Problem } from '../problem.js'
import { askFirst, CONFIRMED } from './confirmed.js'
import { object, PAGE, type PageBody, route } from './route.js'

const LIST = { type: 'string', minLength: 1, maxLength: 64, description: 'The name of a list in the store.' } as const

interface EntryBody {
  readonly list: string
  readonly identity: GivenIdentity
  readonly reason?: string
  readonly expiresAt?: number
  readonly confirmed?: boolean
}

export const LISTS = [
  route<PageBody & { readonly list: string }>({
    method: 'POST',
    path: '/api/list',
    id: 'list',
    summary: 'A page of the entries of a list, in no order.',
    may: 'read',
    body: object({ list: LIST, ...PAGE }, 'list'),
    answer: 'Entries, and the cursor of the next page.',
    run: ({ console: { store }, body: { list, ...query } }) => listIn(store, list).list(query),
  }),
  route<EntryBody>({
    method: 'POST',
    path: '/api/list/add',
    id: 'listAdd',
    summary: 'Adds an identity to a list, or replaces its entry.',
    may: 'act',
    body: object(
      {
        list: LIST,
        identity: IDENTITY,
        reason: { type: 'string', maxLength: 200 },
        expiresAt: {
          type: 'integer',
          minimum: 0,
          maximum: 2 ** 48 - 1,
          description: 'Ms since 1970; never without it.',
        },
        confirmed: CONFIRMED,
      },
      'list',
      'identity',
    ),
    answer: 'The entry.',
    async run({ console: parts, operator, ip, body: { list: name, identity: given, confirmed, ...details } }) {
      const { store } = parts
      const identity = byKind(given)
      const list = listIn(store, name)
      askFirst(denies(parts, name) && containsAddress(identity, ip), confirmed)
      // A mistake changes nothing, and has no entry in the log.
      if ((details.expiresAt ?? Number.POSITIVE_INFINITY) <= Date.now()) {
        throw new Problem(400, 'expiresAt: expected an instant in the future')
      }
      const before = await list.get(identity)
      const change = {
        by: operator.name,
        action: 'list-add',
        identity: textOf(identity),
        before,
        after: { list: name, ...details },
      }
      return makeChange(store, change, async () => {
        await list.add(identity, details)
        return { entry: await list.get(identity) }
      })
    },
  }),
  route<Pick<EntryBody, 'list' | 'identity'>>({
    method: 'POST',
    path: '/api/list/remove',
    id: 'listRemove',
    summary: 'Removes the entry of exactly this identity from a list. Entries of ranges that contain it stay.',
    may: 'act',
    body: object({ list: LIST, identity: IDENTITY }, 'list', 'identity'),
    answer: 'The entry that was removed.',
    async run({ console: { store }, operator, body: { list: name, identity: given } }) {
      const identity = byKind(given)
      const list = listIn(store, name)
      const before = await list.get(identity)
      if (!before) throw new Problem(404, 'the list has no entry of exactly this identity')
      const change = {
        by: operator.name,
        action: 'list-remove',
        identity: textOf(identity),
        before: { list: name, ...before },
      }
      return makeChange(store, change, async () => {
        await list.remove(identity)
        return { removed: before }
      })
    },
  }),
]

/** @throws Problem; SluiceError for a name that is none */
function listIn(store: Store, name: string): StoreList {
  const list = store[STORE_LISTS]?.list?.(name)
  if (list) return list
  throw new Problem(501, 'this store has no lists')
}

/** Whether the store, or a limiter or a policy of the console, refuses identities on a list. */
function denies(parts: CheckedOptions<never>, name: string): boolean {
  return hasEffect(parts, name, 'deny')
}

/** What the store, the limiters and the policies of the console do with identities on a list; empty where nothing uses it. */
export function effectsOf(parts: CheckedOptions<never>, name: string): ('allow' | 'deny')[] {
  return (['allow', 'deny'] as const).filter((effect) => hasEffect(parts, name, effect))
}

function hasEffect({ store, limiters, documents }: CheckedOptions<never>, name: string, effect: 'allow' | 'deny') {
  const isIn = (lists: unknown) => [lists].flat().some((item) => (item as Partial<List> | undefined)?.name === name)
  return (
    isIn(store[STORE_LISTS]?.given?.[effect]) ||
    limiters.some((limiter) => listsOfLimiter(limiter)[effect].includes(name)) ||
    documents.some(({ policies }) =>
      [...policies.byName.values()].some(({ options }) => isIn(propertyOf(options, effect))),
    )
  )
}
