import { type ModulesContainer, Reflector } from '@nestjs/core'

/** Calls that a handler gets. A `field` is resolved beside the query's own fields, and guards run for it only by a setting. */
export type HandlerType = 'http' | 'ws' | 'graphql' | 'subscription' | 'field' | 'rpc'

/** A method that may handle calls, of a class that an app has. */
export interface Handler {
  readonly handler: object
  readonly owner: object
  /** The class and the method, as its limiter is called that has no name. */
  readonly place: string
  readonly type: HandlerType
}

const reflector = new Reflector()

/** The key under which Nest keeps the guards of a handler or a class. */
const GUARDS = '__guards__'

const RESOLVER = 'graphql:resolver_type'
/** The keys under which Nest and its packages mark handlers. */
const MARKS: readonly (readonly [key: string, type: HandlerType])[] = [
  ['path', 'http'],
  ['websockets:message_mapping', 'ws'],
  [RESOLVER, 'graphql'],
  ['graphql:resolve_property', 'graphql'],
  ['graphql:resolve_reference', 'graphql'],
  ['microservices:handler_type', 'rpc'],
]

/** The handlers of an app, in the order of its modules and of their definition, which is the same in every process. */
export function* handlersIn(modules: ModulesContainer): Generator<Handler> {
  const seen = new Set<object>()
  for (const { controllers, providers } of modules.values()) {
    for (const { metatype } of [...controllers.values(), ...providers.values()]) {
      // A factory has no methods.
      if (typeof metatype !== 'function' || seen.has(metatype)) continue
      seen.add(metatype)
      yield* handlersOf(metatype)
    }
  }
}

function* handlersOf(owner: object & { readonly name: string; readonly prototype: object }): Generator<Handler> {
  // Of the class itself, which has keys of the same names.
  const seen = new Set(['constructor'])
  for (let at: object = owner.prototype; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const [name, { value: handler }] of Object.entries(Object.getOwnPropertyDescriptors(at))) {
      // A subclass overrides it.
      if (seen.has(name)) continue
      seen.add(name)
      if (typeof handler !== 'function') continue
      for (const [key, type] of MARKS) {
        if (reflector.get(key, handler) === undefined) continue
        yield {
          handler,
          owner,
          place: `${owner.name}-${name}`,
          type: type === 'graphql' ? typeOfField(handler, owner) : type,
        }
      }
    }
  }
}

/** As `@nestjs/graphql` decides it. */
function typeOfField(handler: object, owner: object): HandlerType {
  const root = reflector.getAllAndOverride<unknown>(RESOLVER, [handler, owner] as never)
  if (root === 'Subscription') return 'subscription'
  return root === 'Query' || root === 'Mutation' ? 'graphql' : 'field'
}

/** The guards of a handler or a class: classes, and objects. */
export function guardsOf(at: object): readonly unknown[] {
  return reflector.get<unknown[] | undefined>(GUARDS, at as never) ?? []
}

/** The options of a GraphQLModule that say for which field resolvers Nest runs guards. */
interface GraphqlOptions {
  /** The modules whose resolvers it has. Empty or missing for all. */
  readonly include?: readonly unknown[]
  readonly fieldResolverEnhancers?: readonly string[]
}

/** Whether guards run for the field resolvers of a class, in each GraphQLModule that has it. */
export function runsGuardsOfFields(modules: ModulesContainer, owner: object): boolean {
  const all = [...modules.values()]
  const homes = all.filter(({ providers }) => [...providers.values()].some(({ metatype }) => metatype === owner))
  return all.every(({ providers }) => {
    const options = providers.get('GqlModuleOptions')?.instance as GraphqlOptions | undefined
    if (!options) return true
    const { include = [], fieldResolverEnhancers = [] } = options
    const hasOwner = include.length === 0 || homes.some(({ metatype }) => include.includes(metatype))
    return !hasOwner || fieldResolverEnhancers.includes('guards')
  })
}
