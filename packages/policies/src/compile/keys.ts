import {
  byCookie,
  byCredentials,
  byHeader,
  byIp,
  byMethod,
  byPath,
  byRoute,
  byUser,
  compose,
  everyone,
  type KeyFunction,
  keyed,
} from '@sluice/core'
import { isKind } from '@sluice/core/internal'
import { LONGEST_KIND } from '@sluice/core/store'
import type { KeyData, PartOfKey } from '../document/document.js'
import { type Path, type Problem, shown } from '../problems/problem.js'
import { ANY_RESOLVER, type Resolvers } from './resolvers.js'
import { tried } from './tried.js'

// biome-ignore lint/suspicious/noExplicitAny: a document serves any framework's requests
type Key = KeyFunction<any>

/** Kinds that need no function of the application. */
const BUILT_IN: Readonly<Record<string, () => Key>> = {
  ip: () => byIp(),
  path: () => byPath(),
  method: () => byMethod(),
  route: () => byRoute(),
  everyone: () => everyone(),
  credentials: () => byCredentials(),
}

/** Makes the keys of a document: equal ones are one function, so that limits on them share an identity. */
export class Keys {
  readonly #resolvers: NonNullable<Resolvers['keys']>
  readonly #takesAny: boolean
  readonly #made = new Map<string, Key>()

  constructor(resolvers: Resolvers | typeof ANY_RESOLVER) {
    this.#takesAny = resolvers === ANY_RESOLVER
    this.#resolvers = (resolvers === ANY_RESOLVER ? undefined : resolvers.keys) ?? {}
  }

  /** Undefined, with a problem, where it cannot be made. */
  make(data: KeyData, path: Path, problems: Problem[]): Key | undefined {
    const parts = (Array.isArray(data) ? data : [data]) as readonly PartOfKey[]
    const id = JSON.stringify(parts)
    const known = this.#made.get(id)
    if (known) return known
    const keys = parts.map((part, i) => this.#part(part, Array.isArray(data) ? [...path, i] : path, problems))
    if (keys.includes(undefined)) return undefined
    const key = compose(...(keys as Key[]))
    if (!isKind(key.kind as string)) {
      problems.push({ path, message: `expected kinds of at most ${LONGEST_KIND} characters together` })
      return undefined
    }
    this.#made.set(id, key)
    return key
  }

  #part(part: PartOfKey, path: Path, problems: Problem[]): Key | undefined {
    const id = JSON.stringify([part])
    let key = this.#made.get(id)
    if (key) return key
    const wrong: Problem[] = []
    key = tried(path, wrong, () => (typeof part === 'string' ? this.#ofKind(part) : byIp(part.ip)))
    problems.push(...wrong.map(({ message }) => ({ path, message })))
    if (wrong.length > 0) return undefined
    if (!key) {
      const kinds = [...Object.keys(BUILT_IN), 'header:<name>', 'cookie:<name>', ...Object.keys(this.#resolvers)]
      const advice = 'register others by `keys` in code'
      problems.push({ path, message: `expected ${kinds.join(', ')} (${advice}), got ${shown(part)}` })
      return undefined
    }
    this.#made.set(id, key)
    return key
  }

  #ofKind(kind: string): Key | undefined {
    const [, source, name] = /^(header|cookie):(.+)$/.exec(kind) ?? []
    if (name !== undefined) return source === 'header' ? byHeader(name) : byCookie(name)
    if (Object.hasOwn(BUILT_IN, kind)) return BUILT_IN[kind]?.()
    if (!this.#takesAny && !Object.hasOwn(this.#resolvers, kind)) return undefined
    const resolver: Key = this.#takesAny ? () => undefined : (this.#resolvers[kind] as Key)
    return kind === 'user' ? byUser(resolver) : keyed(kind, resolver)
  }
}
