import { type List, SluiceError, type Store } from '@sluice/core'
import { hasOwn, knownOptions } from '@sluice/core/internal'
import { LISTS } from '@sluice/core/store'
import type { NameOf } from './identity/given.js'
import type { PeekableLimiter } from './identity/limiters.js'
import type { PeekablePolicies } from './identity/policies.js'

/** The person, or the program, that a request comes from. */
export interface Operator {
  /** Stands in the log of changes: up to 100 characters. */
  readonly name: string
  /** `read`: sees everything. `act`: may change everything, too. */
  readonly may: 'read' | 'act'
}

/** Whether a request may use the console. Anything but an operator refuses. */
export type Authorize<Request> = (request: Request) => unknown

/** A document of policies, and the name of the limiter that decides by it. */
export interface NamedPolicies {
  readonly policies: PeekablePolicies
  /** The `name` of `rateLimit({ policies, name })`. @default 'default' */
  readonly name?: string
}

export interface ConsoleOptions<Request = unknown> {
  /** The store that the console shows and changes. */
  readonly store: Store
  /**
   * Who the request comes from, and whether they may read or act: `{ name: 'ann', may: 'read' }`.
   *
   * Anything else refuses, as does an error, a rejection, and a promise of more than 5 seconds. No console starts
   * without it.
   */
  readonly authorize: Authorize<Request>
  /** Limiters whose limits are shown: of `createLimiter`, or handlers of `rateLimit`. @default none */
  readonly limiters?: readonly (PeekableLimiter | { readonly limiter: PeekableLimiter })[]
  /** Documents of policies whose limits are shown. @default none */
  readonly policies?: PeekablePolicies | NamedPolicies | readonly (PeekablePolicies | NamedPolicies)[]
  /** Names of lists in the store that are shown beside those that the store uses. @default none */
  readonly lists?: readonly string[]
  /**
   * The hosts that the console answers, as browsers send them: `admin.example.com`, `localhost:3000`.
   *
   * Needed for every host with a name: a page of anyone may point a name of its own at this server.
   * @default every IP address, and `localhost`, with any port
   */
  readonly hosts?: readonly string[]
  /**
   * Whether this process records its traffic: for the page *Traffic*, which shows where requests come from.
   *
   * Takes 1 to 2 µs of a decision, up to 6 µs where no two requests are alike, and up to 5 MB. Processes without a console call
   * `recordTraffic(store)`.
   * @default false
   */
  readonly traffic?: boolean
  /**
   * Names clients for people, such as `Ann Lee` for `{ kind: 'user', value: '42' }`. The page shows the name beside the identity,
   * and stores it nowhere.
   *
   * It is called when an operator sees the identity, for up to 100 identities of a request, 10 at a time. Not for composed kinds,
   * kinds without a client such as `path`, and hashes: of headers, of cookies, by `hashedKey`, and of values above 256 characters.
   *
   * A name is cut at 100 characters. `undefined` means none, as does anything else that is no text, an error, a rejection, and a
   * promise that is not resolved within 1 second of the request; these warn, once a minute.
   * @default no names
   */
  readonly nameOf?: NameOf
  /** Refuses every change. @default false */
  readonly readOnly?: boolean
}

/** Options that have been checked. */
export interface CheckedOptions<Request> {
  readonly store: Store
  readonly authorize: Authorize<Request>
  readonly limiters: readonly PeekableLimiter[]
  readonly documents: readonly Required<NamedPolicies>[]
  readonly lists: readonly string[]
  readonly hosts: ReadonlySet<string> | undefined
  readonly traffic: boolean
  readonly nameOf: NameOf | undefined
  readonly readOnly: boolean
}

const WHERE = 'consoleFor'
const OPTIONS = ['store', 'authorize', 'limiters', 'policies', 'lists', 'hosts', 'traffic', 'nameOf', 'readOnly']

/** @throws SluiceError `INVALID_POLICY` */
export function checkedOptions<Request>(given: ConsoleOptions<Request>): CheckedOptions<Request> {
  knownOptions(WHERE, given, OPTIONS)
  const {
    store,
    authorize,
    limiters = [],
    policies = [],
    lists = [],
    hosts,
    traffic = false,
    nameOf,
    readOnly = false,
  } = given
  if (typeof store?.decide !== 'function') wrong('store', 'a store, such as redisStore(client)')
  if (typeof authorize !== 'function') {
    wrong('authorize', "a function that returns { name, may: 'read' | 'act' } for requests of operators")
  }
  if (!Array.isArray(limiters)) wrong('limiters', 'an array of limiters')
  if (typeof traffic !== 'boolean') wrong('traffic', 'true or false')
  if (nameOf !== undefined && typeof nameOf !== 'function') {
    wrong('nameOf', 'a function that returns the name of an identity, or a promise of it')
  }
  if (typeof readOnly !== 'boolean') wrong('readOnly', 'true or false')
  return {
    store,
    authorize,
    limiters: limiters.map(limiterIn),
    documents: [policies].flat().map(documentIn),
    lists: namesIn(lists, store),
    hosts: hosts === undefined ? undefined : hostsIn(hosts),
    traffic,
    nameOf,
    readOnly,
  }
}

function limiterIn(given: unknown): PeekableLimiter {
  const limiter = (given as { limiter?: unknown } | undefined)?.limiter ?? given
  if (typeof (limiter as PeekableLimiter | undefined)?.peek === 'function') return limiter as PeekableLimiter
  return wrong('limiters', 'limiters of createLimiter, or handlers of rateLimit')
}

function documentIn(given: PeekablePolicies | NamedPolicies): Required<NamedPolicies> {
  const { policies, name = 'default' } = (hasOwn(given, 'policies') ? given : { policies: given }) as NamedPolicies
  if (typeof policies?.forIdentity !== 'function')
    wrong('policies', 'what `await policies.from(…)` of @sluice/policies returns')
  return { policies, name }
}

/** The names of the store's own lists, and those given. */
function namesIn(given: readonly string[], store: Store): readonly string[] {
  if (!Array.isArray(given) || !given.every((name) => typeof name === 'string')) wrong('lists', 'names of lists')
  const { allow = [], deny = [] } = store[LISTS]?.given ?? {}
  const own = [...allow, ...deny].flatMap((item) => (typeof item === 'object' ? [(item as List).name] : []))
  return [...new Set([...own, ...given])]
}

function hostsIn(hosts: unknown): ReadonlySet<string> {
  const isHost = (host: unknown) => typeof host === 'string' && /^[^\s/@]+$/.test(host)
  if (!Array.isArray(hosts) || hosts.length === 0 || !hosts.every(isHost)) {
    wrong('hosts', 'hosts such as "admin.example.com" or "localhost:3000", without a scheme')
  }
  return new Set((hosts as string[]).map((host) => host.toLowerCase()))
}

function wrong(option: string, expected: string): never {
  throw new SluiceError('INVALID_POLICY', `${WHERE}: ${option}: expected ${expected}`)
}
