import type { Resolvers } from '@sluice/policies'
import type { Named } from './cannot.js'
import type { DescribedRequest } from './described-request.js'

/** What documents take from code, taken from what callers name. */
export function resolversOf({ keys, tiers }: Named): Resolvers {
  const namedIn = <Value>(values: Readonly<Record<string, Value>> | undefined, name: string): Value | undefined =>
    values && Object.hasOwn(values, name) ? values[name] : undefined
  return {
    keys: Object.fromEntries(keys.map((name) => [name, (request: DescribedRequest) => namedIn(request.keys, name)])),
    // One that is not named is reported as wrong, with those that there are.
    tiers: Object.fromEntries(
      tiers.map((name) => [name, (request: DescribedRequest) => namedIn(request.tiers, name) ?? '']),
    ),
  }
}
