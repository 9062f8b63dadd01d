import type { Store } from '@sluice/core'
import { getOrInsert, lastRefusalsOf } from '@sluice/core/internal'
import { BANS } from '@sluice/core/store'
import type { Parts } from './identity.js'

/** Kinds without a client: of paths, and of all clients together. */
export const NO_CLIENTS = ['everyone', 'path', 'route', 'host', 'method']
/** The kinds of a store are kept for as long, in ms. */
const KEPT_MS = 30_000

/** Redis, whose keys have kinds that no limiter of this console counts. */
interface WithKinds {
  kinds(): Promise<readonly string[]>
}

const kindsByStore = new WeakMap<Store, Promise<readonly string[]>>()

/** The kinds of clients: that limiters and documents count, and that the store has. */
export async function clientKinds(parts: Parts): Promise<readonly string[]> {
  const { store, limiters, documents } = parts
  const ofDocuments = documents.flatMap(({ policies }) =>
    [...policies.byName.values()].flatMap(({ options }) =>
      (options.limits ?? []).flatMap(({ key }) => key?.kind ?? 'ip'),
    ),
  )
  const ofStore = await getOrInsert(kindsByStore, store, () => {
    const kinds = kindsIn(store)
    setTimeout(() => kindsByStore.delete(store), KEPT_MS).unref()
    return kinds
  })
  const all = [...limiters.flatMap(({ kinds }) => kinds), ...ofDocuments, ...ofStore]
  return [...new Set(['ip', ...all])].filter((kind) => !kind.split('+').every((each) => NO_CLIENTS.includes(each)))
}

/** Of an unreachable store, nothing is known. */
async function kindsIn(store: Store): Promise<readonly string[]> {
  const { kinds } = store as Partial<WithKinds>
  const [ofKeys, { refusals }, { entries }] = await Promise.all([
    typeof kinds === 'function' ? kinds.call(store) : [],
    lastRefusalsOf(store)?.read() ?? { refusals: [] },
    store[BANS]?.blocks?.list({ max: 1000 }) ?? { entries: [] },
  ]).catch(() => NOTHING)
  const ofRefusals = refusals.flatMap(({ identities }) => identities.map((text) => text.slice(0, text.indexOf('='))))
  return [...ofKeys, ...ofRefusals, ...entries.map(({ kind }) => kind)]
}

const NOTHING = [[], { refusals: [] }, { entries: [] }] as const
