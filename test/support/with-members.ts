import type { Store } from '@sluice/core'

/** The same store, but for these members. */
export function withMembers<Kept extends Store, Members extends object>(store: Kept, members: Members): Kept & Members {
  return new Proxy(store, {
    has: (_, name) => name in members || name in store,
    get(_, name) {
      if (Object.hasOwn(members, name)) return Reflect.get(members, name)
      const member = Reflect.get(store, name, store)
      return typeof member === 'function' ? member.bind(store) : member
    },
    set: (_, name, value) => Reflect.set(members, name, value),
  }) as Kept & Members
}
