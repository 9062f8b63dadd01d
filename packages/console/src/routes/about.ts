import type { Limit } from '@sluice/core'
import { capacityOf, isPropertyOf } from '@sluice/core/internal'
import { BANS, CHANGES, LISTS } from '@sluice/core/store'
import type { CheckedOptions } from '../options.js'
import { messageOf } from '../problem.js'
import { effectsOf } from './lists.js'
import { route } from './route.js'

export const ABOUT = [
  route({
    method: 'GET',
    path: '/api/about',
    id: 'about',
    summary: 'Who asks and what they may, how the store is, and what it can do.',
    may: 'read',
    answer: 'The operator, the state of the store, and its features.',
    async run({ console: parts, operator }) {
      const { store, readOnly, lists, traffic, nameOf } = parts
      const { cause, ...health } = (isPropertyOf(store, 'health') ? await store.health?.() : undefined) ?? {
        state: 'available',
        cause: undefined,
      }
      return {
        operator: { ...operator, may: readOnly ? 'read' : operator.may },
        readOnly,
        store: {
          kind: isPropertyOf(store, 'stats') ? store.stats?.()?.kind : undefined,
          ...health,
          ...(cause && { cause: cause.message }),
        },
        features: {
          blocks: store[BANS]?.blocks !== undefined,
          lists: store[LISTS]?.list ? lists : [],
          listEffects: Object.fromEntries(lists.map((name) => [name, effectsOf(parts, name)])),
          forget: isPropertyOf(store, 'forget'),
          search: isPropertyOf(store, 'kept'),
          changes: store[CHANGES] !== undefined,
          traffic,
          names: nameOf !== undefined,
        },
      }
    },
  }),
  route({
    method: 'GET',
    path: '/api/policies',
    id: 'policies',
    summary: 'The limiters and documents of policies that the console was given, with their limits.',
    may: 'read',
    answer: 'Limiters and documents.',
    run({ console: { limiters, documents } }) {
      return {
        limiters: limiters.map(({ name, kinds, tiers, limits }) => ({
          name,
          kinds,
          tiers,
          limits: limits.map(shownLimit),
        })),
        documents: documents.map(documentOf),
      }
    },
  }),
]

function documentOf({ name, policies }: CheckedOptions<never>['documents'][number]) {
  const { version, error, byName } = policies
  return {
    limiter: name,
    version,
    ...(error && { error: messageOf(error) }),
    policies: [...byName].map(([policy, { options }]) => ({
      name: policy,
      limits: (options.limits ?? []).map(shownLimit),
    })),
  }
}

/** Numbers that are functions of a request show as `null`. */
function shownLimit(given: Limit) {
  const { name, algorithm, limit, window, unit, key } = given
  const capacity = capacityOf(given)
  const numberIn = (value: unknown) => (typeof value === 'number' ? value : null)
  const kind = key?.kind
  return {
    ...(name !== undefined && { name }),
    algorithm,
    limit: numberIn(limit),
    windowMs: numberIn(window),
    ...(capacity !== undefined && { capacity }),
    ...(unit !== undefined && { unit }),
    ...(kind !== undefined && { kind }),
  }
}
