import { hasOwn } from '@sluice/core/internal'
import { type Policies, policies } from '@sluice/policies'
import { namesIn } from '../../documents/names.js'
import type { DocumentPlace } from '../serve/settings.js'
import { sourceAt } from '../serve/source.js'

/** The policies of a document, to show their limits: functions that only code has are stood in for. @throws PoliciesError */
export async function shownPolicies(place: DocumentPlace, client: unknown, prefix: string): Promise<Policies> {
  const keys: Record<string, () => undefined> = {}
  const tiers: Record<string, () => string> = {}
  const costs: Record<string, () => number> = {}
  return policies.from({
    ...(await sourceAt(place, client, prefix)),
    // Overrides beside it are written where it is.
    ...(hasOwn(place, 'inRedis') && { save: client }),
    keys,
    tiers,
    costs,
    // Called before names are looked up, with each version: a later one may name others.
    check(document) {
      const names = namesIn(document)
      for (const name of names.keys) keys[name] = () => undefined
      for (const name of names.tiers) tiers[name] = () => ''
      for (const name of names.costs) costs[name] = () => 1
      return []
    },
  })
}
