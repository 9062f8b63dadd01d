import type { ModulesContainer } from '@nestjs/core'
import { SluiceError } from '@sluice/core'
import { isOfSluice } from './guard.js'
import { guardsOf, handlersIn, runsGuardsOfFields } from './handlers.js'
import { settingsOf } from './route-settings.js'

/**
 * Checks that guards run for the field resolvers that have limits of their own. Once all providers are made, as the options of
 * GraphQL may be made last.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkFieldResolvers(modules: ModulesContainer): void {
  const handlers = [...handlersIn(modules)]
  for (const { handler, owner, place, type } of handlers) {
    if (type !== 'field' || settingsOf(handler, owner) === false) continue
    // A limit of the class may be for its other calls.
    const isOnlyOfFields = !handlers.some((other) => other.owner === owner && other.type !== 'field')
    const guards = isOnlyOfFields ? [...guardsOf(handler), ...guardsOf(owner)] : guardsOf(handler)
    if (!guards.some(isOfSluice) || runsGuardsOfFields(modules, owner)) continue
    throw new SluiceError(
      'INVALID_POLICY',
      `GraphQL field ${place}: expected fieldResolverEnhancers: ['guards'] among the options of GraphQLModule, as Nest runs no ` +
        'guard for field resolvers without',
    )
  }
}
