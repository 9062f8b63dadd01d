import { type ModulesContainer, Reflector } from '@nestjs/core'

/** A method that may handle calls, of a class that an app has. */
interface Handler {
  readonly handler: object
  readonly owner: object
  /** The type of the calls that it handles. */
  readonly type: string
}

const reflector = new Reflector()

/** The keys under which Nest and its packages mark handlers of a type. */
const MARKS = {
  http: 'path',
  ws: 'websockets:message_mapping',
  graphql: 'graphql:resolver_type',
  rpc: 'microservices:handler_type',
} as const

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

function* handlersOf(owner: object & { readonly prototype: object }): Generator<Handler> {
  for (let at: object = owner.prototype; at && at !== Object.prototype; at = Object.getPrototypeOf(at)) {
    for (const { value: handler } of Object.values(Object.getOwnPropertyDescriptors(at))) {
      if (typeof handler !== 'function') continue
      for (const [type, mark] of Object.entries(MARKS)) {
        if (reflector.get(mark, handler) !== undefined) yield { handler, owner, type }
      }
    }
  }
}
