import type { HttpContext } from '../request/context.js'
import { countedValue, type IdentityByKind, isCounted, joined } from '../store/identity.js'
import { propertyOf } from '../util/property-of.js'
import { entriesIn } from './given-identities.js'
import { checkedKey } from './key.js'
import { kindOf, partsOf } from './keyed.js'
import { type Given, valueFor } from './kinds.js'
import type { KeyFunction } from './limits/limit.js'

type Key = KeyFunction<never> | undefined

/** What is known of a request: some of its identities, and perhaps its path, its method and its tier. */
export interface KnownFields {
  readonly identities: readonly IdentityByKind[]
  readonly path?: string | undefined
  /** Beside `path`. @default 'GET' */
  readonly method?: string | undefined
  readonly tier?: string | undefined
}

/** A function has read what is not known of a request. */
export class NeedsRequest extends Error {}

/** Stands for a request of which nothing is known: a function that reads it throws, so that nothing is guessed. */
export const UNKNOWN_REQUEST: never = unknownObject() as never

/** The bits of an IPv6 address that one client has, unless a key says otherwise. */
const USUAL_BITS = 64

/** A request of which only some things are known. */
export class KnownRequest {
  readonly tier: string | undefined
  readonly path: string | undefined
  readonly method: string
  /** For functions of requests: has the path, the method and the address, as far as they are known. */
  // biome-ignore lint/suspicious/noExplicitAny: requests of any framework
  readonly context: HttpContext<any>
  readonly #given = new Map<string, Given>()

  /** @throws SluiceError `INVALID_KEY` */
  constructor({ identities, path, method = 'GET', tier }: KnownFields) {
    this.tier = tier
    this.path = path
    this.method = method
    for (const identity of identities) this.#add(givenBy(identity))
    const { address } = this
    const fields = {
      request: UNKNOWN_REQUEST,
      ...(address !== undefined && { ip: address }),
      ...(path !== undefined && { path, target: path, method }),
    }
    this.context = Object.create(UNKNOWN_REQUEST, Object.getOwnPropertyDescriptors(fields))
  }

  /** A composed identity is one of each of its kinds, too. */
  #add(given: Given): void {
    const { kind, value, isCounted } = given
    if (!this.#given.has(kind)) this.#given.set(kind, given)
    const kinds = kind.split('+')
    if (kinds.length === 1 || !Array.isArray(value) || value.length !== kinds.length) return
    kinds.forEach((each, i) => {
      if (!this.#given.has(each)) this.#given.set(each, { kind: each, value: value[i], isCounted })
    })
  }

  has(kind: string): boolean {
    return this.#given.has(kind)
  }

  /** Its address, or the first one of its network of IPv6; undefined if it is not known. */
  get address(): string | undefined {
    return this.#network?.[0]
  }

  get #network(): [address: string | undefined, bits: number] | undefined {
    const given = this.#given.get('ip')
    if (!given) return undefined
    const [address = '', bits] = String(given.value).trim().split('/', 2)
    if (bits === undefined) return [address, 128]
    // Clients of IPv4 have one address: of others in the network nothing is known.
    return [address.includes(':') ? address : undefined, Number(bits)]
  }

  /**
   * The value that a key counts. Undefined if it is not known.
   *
   * @throws SluiceError `INVALID_KEY`
   */
  valueFor(where: string, key: Key): string | undefined {
    const kind = kindOf(key)
    const given = this.#given.get(kind)
    if (given) return kind === 'ip' ? this.#addressFor(where, key) : valueFor(where, key, inText(given))
    const value = this.#valueOf(where, key)
    return value === undefined ? undefined : checkedKey(where, value)
  }

  #valueOf(where: string, key: Key): string | undefined {
    const kind = kindOf(key)
    const given = this.#given.get(kind)
    if (given && kind === 'ip') return this.#addressFor(where, key)
    if (given?.isCounted) return String(given.value)
    if (given) return key && propertyOf(key, 'normalize') ? valueFor(where, key, given) : String(given.value)
    const parts = key ? partsOf(key) : []
    if (parts.length > 1) {
      const values = parts.map((part) => this.#valueOf(where, part))
      return values.includes(undefined) ? undefined : joined(values as string[])
    }
    // Such as the path, and `everyone()`.
    return key && this.ask(() => key(UNKNOWN_REQUEST, this.context as never) as string)
  }

  #addressFor(where: string, key: Key): string | undefined {
    const [value, bits = 0] = this.#network ?? []
    if (value === undefined || ((key && propertyOf(key, 'bits')?.ipv6) ?? USUAL_BITS) > bits) return undefined
    return valueFor(where, key, { kind: 'ip', value, isCounted: false })
  }

  /** The result of a function of requests. Undefined if it reads what is not known. */
  ask<Result>(call: () => Result): Result | undefined {
    try {
      return call()
    } catch (error) {
      if (error instanceof NeedsRequest) return undefined
      throw error
    }
  }
}

function givenBy(identity: IdentityByKind): Given {
  if (isCounted(identity)) return { kind: identity.kind, value: identity.value, isCounted: true }
  const [[kind, value] = ['', undefined]] = entriesIn(identity) ?? []
  return { kind, value, isCounted: false }
}

function inText(given: Given): Given {
  return given.isCounted ? { ...given, value: countedValue(given as never) } : given
}

function unknownObject(): object {
  const fail = () => {
    throw new NeedsRequest('a request is not known')
  }
  return new Proxy(() => {}, {
    get: fail,
    has: fail,
    apply: fail,
    set: fail,
    ownKeys: fail,
    getOwnPropertyDescriptor: fail,
  })
}
