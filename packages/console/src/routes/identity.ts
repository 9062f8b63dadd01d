import type { IdentityByKind } from '@sluice/core'
import { isCountOf, isPropertyOf, limiterOfIdentities, resetCounts, usedLimits } from '@sluice/core/internal'
import { withAuthors } from '../block-authors.js'
import { makeChange } from '../changes.js'
import {
  blocksOf,
  byKind,
  counted,
  type GivenIdentity,
  IDENTITY,
  limiterFor,
  listsOf,
  namesOf,
  networksOf,
  searchable,
  textOf,
} from '../identity/identity.js'
import { countsIt, decided, groupsIn, limitsOf } from '../identity/peeks.js'
import type { ShownRequest } from '../identity/policies.js'
import type { CheckedOptions } from '../options.js'
import { Problem } from '../problem.js'
import { refusalsOf } from '../refusals.js'
import { ownOverrides } from './overrides.js'
import { object, route } from './route.js'

interface IdentityBody extends ShownRequest {
  readonly identity: GivenIdentity
}

const REQUEST = {
  identity: IDENTITY,
  with: {
    type: 'array',
    maxItems: 16,
    items: IDENTITY,
    description: 'Other identities of the same request, such as its user beside its address.',
  },
  path: {
    type: 'string',
    minLength: 1,
    maxLength: 2048,
    description: 'Policies of a document for other paths are left out.',
  },
  method: { type: 'string', minLength: 1, maxLength: 20, description: 'Beside path; GET without it.' },
  tier: { type: 'string', minLength: 1, maxLength: 64, description: 'Every tier without it.' },
} as const

const SEARCH = {
  type: 'boolean',
  description: 'Searches all keys of Redis, as sluice inspect does. Takes seconds, and load, with millions of keys.',
} as const

export const IDENTITIES = [
  route<IdentityBody & { readonly search?: boolean }>({
    method: 'POST',
    path: '/api/identity',
    id: 'identity',
    summary:
      'What each limit has left for an identity, its blocks and bans, its overrides beside documents, and the lists that it is on.',
    may: 'read',
    body: object({ ...REQUEST, search: SEARCH }, 'identity'),
    answer:
      'The identity as it is counted, its limits, blocks, overrides and lists; with search, what Redis stores of it.',
    async run({ console: parts, body: { identity: given, search, ...request } }) {
      const identity = byKind(given)
      const limits = await limitsOf(parts, identity, request)
      const [blocks, lists, overrides, stored] = await Promise.all([
        blocksOf(parts, identity, groupsIn(limits)).then((found) => withAuthors(parts.store, found)),
        listsOf(parts, identity),
        ownOverrides(parts, given, limits),
        search ? storedOf(parts, identity) : undefined,
      ])
      return {
        identity: counted(identity),
        limits: limits.filter(countsIt),
        blocks,
        lists,
        ...(overrides && { overrides }),
        ...(stored && { stored }),
      }
    },
  }),
  route<IdentityBody>({
    method: 'POST',
    path: '/api/why',
    id: 'why',
    summary: 'Why an identity would be refused now, and its last refusals.',
    may: 'read',
    body: object(REQUEST, 'identity'),
    answer:
      'The limiters that would refuse it now; those that would only report it; those of which more has to be known, by needs; and its refusals of the last 15 minutes, newest first, as for all identities.',
    async run({ console: parts, body: { identity: given, ...request } }) {
      const identity = byKind(given)
      const { kind, value } = counted(identity)
      const limits = await limitsOf(parts, identity, request)
      const [blocks, refusals] = await Promise.all([
        blocksOf(parts, identity, groupsIn(limits)),
        refusalsOf(parts.store, `${kind}=${value}`),
      ])
      const all = decided(limits)
      // A list that denies comes before blocks.
      const mayBeBlocked = all.now.some(({ reason = '' }) => ['blocked', 'banned', 'denied'].includes(reason))
      const isNetwork = all.unknown.some(({ needs }) => needs?.includes('ip'))
      const networks = mayBeBlocked || isNetwork ? await networksOf(parts, identity, blocks) : []
      return { identity: { kind, value }, ...all, blocks, networks, ...refusals }
    },
  }),
  route<IdentityBody & { readonly limiter?: string; readonly search?: boolean; readonly letIn?: boolean }>({
    method: 'POST',
    path: '/api/reset',
    id: 'reset',
    summary: 'Forgets what an identity has used. Blocks, bans and rungs stay.',
    may: 'act',
    body: object(
      {
        ...REQUEST,
        limiter: { type: 'string', minLength: 1, maxLength: 64, description: 'A limiter, or a policy of a document.' },
        search: SEARCH,
        letIn: { type: 'boolean', description: 'Whether the log calls it let-in: its blocks are ended, too.' },
      },
      'identity',
    ),
    answer: 'The limiters, and policies of documents, that were reset.',
    async run({ console: parts, operator, body: { identity: given, limiter, search, letIn, ...request } }) {
      const identity = byKind(given)
      if (search) searchable(parts.store)
      if (limiter !== undefined) await checkName(parts, identity, limiter, search)
      const before = (await limitsOf(parts, identity, request)).filter(countsIt)
      if (before.length === 0 && !search) throw new Problem(404, NOTHING)
      const change = { by: operator.name, action: letIn ? 'let-in' : 'reset', identity: textOf(identity), before }
      return makeChange(parts.store, limiter === undefined ? change : { ...change, policy: limiter }, async () => ({
        reset: [
          ...(await resetGiven(parts, identity, request, limiter)),
          ...(search ? await resetStored(parts, identity, limiter) : []),
        ],
      }))
    },
  }),
  route<{ readonly identity: GivenIdentity; readonly confirmed?: boolean }>({
    method: 'POST',
    path: '/api/forget',
    id: 'forget',
    summary:
      'Erases everything that the store holds of an identity, its last refusals too. Searches all keys of Redis.',
    may: 'act',
    body: object(
      { identity: IDENTITY, confirmed: { type: 'boolean', description: 'Needed, as nothing brings it back.' } },
      'identity',
      'confirmed',
    ),
    answer: 'An object: it is erased.',
    async run({ console: { store }, operator, body: { identity: given, confirmed } }) {
      const identity = byKind(given)
      if (!isPropertyOf(store, 'forget')) throw new Problem(501, 'this store cannot forget an identity')
      if (!confirmed)
        throw new Problem(409, 'forget: nothing brings it back: send confirmed: true', { confirm: 'forget' })
      // The log of changes keeps no identity that was to be erased.
      await makeChange(store, { by: operator.name, action: 'forget' }, async () => store.forget?.(identity))
      return { forgotten: true }
    },
  }),
]

/** What Redis stores of an identity, whichever process counted it. */
async function storedOf({ store }: CheckedOptions<never>, identity: IdentityByKind) {
  const kept = await searchable(store).kept(identity)
  const { strikes, blocks, lists } = kept
  return { ...(await usedLimits(store, kept)), strikes, blocks, lists }
}

const NOTHING = 'nothing that the console was given counts such an identity: search: true finds what Redis has of it'

/** Names in the text of a problem. */
const MAX_SHOWN = 20

/** A misspelt name would reset nothing, and leave an entry of a reset. @throws Problem */
async function checkName(
  parts: CheckedOptions<never>,
  identity: IdentityByKind,
  name: string,
  search: boolean | undefined,
): Promise<void> {
  const known = namesOf(parts)
  if (known.includes(name)) return
  if (search && (await searchable(parts.store).kept(identity)).counts.some((count) => isCountOf(count, name))) return
  const shown = known.length > MAX_SHOWN ? [...known.slice(0, MAX_SHOWN), 'others'] : known
  const expected = shown.length === 0 ? 'the console was given none' : `expected ${shown.join(' or ')}`
  throw new Problem(404, `limiter: no limiter or policy has the name ${JSON.stringify(name)}: ${expected}`)
}

async function resetGiven(
  { store, limiters, documents }: CheckedOptions<never>,
  identity: IdentityByKind,
  request: ShownRequest,
  only: string | undefined,
) {
  const { kind } = counted(identity)
  const own = limiters.filter(({ name, kinds }) => (only === undefined || only === name) && kinds.includes(kind))
  await Promise.all(own.map((limiter) => limiterOfIdentities(limiter).reset(identity)))
  const done: object[] = own.map(({ name }) => ({ limiter: name }))
  for (const { name, policies } of documents) {
    for (const found of await policies.forIdentity(identity, request)) {
      if (only !== undefined && only !== name && only !== found.policy) continue
      await limiterFor(store, name, found).reset(undefined)
      done.push({ limiter: name, policy: found.policy, ...(found.tier !== undefined && { tier: found.tier }) })
    }
  }
  return done
}

async function resetStored({ store }: CheckedOptions<never>, identity: IdentityByKind, only: string | undefined) {
  const kept = await searchable(store).kept(identity)
  const counts = kept.counts.filter((count) => only === undefined || isCountOf(count, only))
  await resetCounts(store, { identity: kept.identity, counts })
  return counts.map(({ policy, cell }) => ({ limiter: policy, stored: cell }))
}
