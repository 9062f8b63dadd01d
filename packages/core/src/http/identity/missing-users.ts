import { isMissing } from '../../policy/key.js'
import { kindOf } from '../../policy/keyed.js'
import type { KeyFunction } from '../../policy/limits/limit.js'
import { isSecretKind } from '../../store/identity.js'

/** Requests after which a function that has found no user is one that never does. */
const LOOKED_AT = 100

/** Looks at the first requests of a limiter for a key function of the application that finds no user in any of them. */
export class MissingUsers {
  readonly #warn: (kind: string) => void
  readonly #asked = new Set<string>()
  readonly #found = new Set<string>()
  /** One that waits for its turn is asked for its keys again. */
  readonly #counted = new WeakSet<object>()
  #left = LOOKED_AT

  /** `warn`: called with the kind of each such function, once. */
  constructor(warn: (kind: string) => void) {
    this.#warn = warn
  }

  /** `values`: what the keys have yielded for a request. */
  look(context: object, keys: readonly (KeyFunction<never> | undefined)[], values: readonly unknown[]): void {
    if (this.#left === 0) return
    let isAsked = false
    for (const [i, key] of keys.entries()) {
      const kind = kindOf(key)
      if (!isOfUsers(kind)) continue
      isAsked = true
      this.#asked.add(kind)
      if (!isMissing(values[i])) this.#found.add(kind)
    }
    if (!isAsked || this.#counted.has(context)) return
    this.#counted.add(context)
    if (--this.#left > 0) return
    for (const kind of this.#asked) if (!this.#found.has(kind)) this.#warn(kind)
  }
}

/** Of `byUser(fn)`, or a function by itself. That clients send no header or cookie says nothing of the application. */
function isOfUsers(kind: string): boolean {
  const parts = kind.split('+')
  return parts.some((part) => part === 'user' || part === 'key') && !isSecretKind(kind)
}
