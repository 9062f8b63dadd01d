import { memoryStore } from '@sluice/core'
import { invalidPolicy, wholeNumber } from '@sluice/core/internal'
import { checkTerms, Hits, type Terms } from './hits.js'
import { type BridgeOptions, checkOptions } from './options.js'

/** Options of the peer, of the plugin or of a route. */
interface RouteSettings {
  readonly max?: unknown
  readonly timeWindow?: unknown
  readonly ban?: unknown
  readonly continueExceeding?: unknown
  readonly exponentialBackoff?: unknown
  readonly groupId?: unknown
  readonly routeInfo?: { readonly method?: unknown; readonly url?: unknown }
}

/** The hits of a client within the window, and the ms until it may come again. */
export interface RouteHits {
  readonly current: number
  /** Until a refused request would be admitted, or until the limit of an admitted one is as good as new. */
  readonly ttl: number
}

type Callback = (error: Error | null, result?: RouteHits) => void

/** Counts for @fastify/rate-limit, which names the limit with each hit. */
export interface RouteStore {
  incr(key: string, callback: Callback, timeWindow: number, max: number): void
  read(key: string, callback: Callback, timeWindow: number, max: number): void
  /** The store of a route with limits of its own. */
  child(routeOptions: object): RouteStore
}

/** The peer makes the store of its own options. */
export type RouteStoreClass = new (options: object) => RouteStore

/** @throws SluiceError `INVALID_POLICY` */
export function routeStores(options: BridgeOptions): RouteStoreClass {
  const where = 'fastify-rate-limit: store'
  checkOptions(where, options)
  const { name = 'fastify-rate-limit', store = memoryStore() } = options
  const global = new Hits(name, { ...options, store })
  // Another name, so that no key of a client equals a route with the key of another.
  const ofRoutes = new Hits(`${name}-routes`, { ...options, store, name: `${name}-routes` })

  return class SluiceStore implements RouteStore {
    readonly #settings: RouteSettings
    readonly #hits: Hits
    readonly #route: string

    constructor(settings: object, route?: string) {
      this.#hits = route === undefined ? global : ofRoutes
      this.#route = route ?? ''
      this.#settings = settings
      this.#check()
    }

    incr(key: string, callback: Callback, timeWindow: number, max: number): void {
      const terms = this.#termsFor(max, timeWindow)
      this.#hits.take(terms, this.#route + key).then((hit) => {
        const isBanned = hit.verdict?.reason === 'banned'
        // The peer bans by the number of refused requests, which a log does not count.
        const current = isBanned && terms.block ? max + terms.block.after : hit.used
        callback(null, { current, ttl: hit.waitMs ?? timeWindow })
      }, callback)
    }

    read(key: string, callback: Callback, timeWindow: number, max: number): void {
      this.#hits
        .look(this.#termsFor(max, timeWindow), this.#route + key)
        .then(
          ({ used, waitMs = timeWindow }) => callback(null, { current: used, ttl: used === 0 ? 0 : waitMs }),
          callback,
        )
    }

    child(routeOptions: object): RouteStore {
      for (const field of IGNORED) {
        const value = (routeOptions as Record<string, unknown>)[field]
        if (value !== undefined)
          invalidPolicy(where, field, 'none in a route, as the store of the plugin counts it', value)
      }
      const { groupId, routeInfo } = routeOptions as RouteSettings
      return new SluiceStore(routeOptions, routeOf(groupId, routeInfo))
    }

    #check(): void {
      const { max, timeWindow, exponentialBackoff } = this.#settings
      if (exponentialBackoff) {
        const remedy = 'use ban, or the bans of @sluice/fastify, which grow'
        invalidPolicy(where, 'exponentialBackoff', 'false', exponentialBackoff, remedy)
      }
      if (typeof timeWindow === 'number') wholeNumber(where, 'timeWindow', timeWindow, 1)
      if (typeof max === 'number' && typeof timeWindow === 'number')
        checkTerms(this.#hits, this.#termsFor(max, timeWindow))
    }

    #termsFor(max: number, timeWindow: number): Terms {
      const { ban, continueExceeding } = this.#settings
      return {
        limit: max,
        windowMs: timeWindow,
        chargesRefusals: continueExceeding === true,
        // The peer admits `ban` refused requests, and bans the next.
        block: typeof ban === 'number' && ban >= 0 ? { after: ban + 1, forMs: timeWindow } : undefined,
      }
    }
  }
}

/** Options of a route that the peer does not read where there is a store. */
const IGNORED = ['cache', 'nameSpace', 'redis', 'store'] as const

/** A route before its key. No route with a key equals another one, as JSON ends by itself. */
function routeOf(groupId: unknown, { method, url }: NonNullable<RouteSettings['routeInfo']> = {}): string {
  return JSON.stringify(typeof groupId === 'string' ? [groupId] : [method ?? '', url ?? ''])
}
