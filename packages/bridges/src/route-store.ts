import { memoryStore } from '@sluice/core'
import { invalidPolicy } from '@sluice/core/internal'
import { checkMs, checkTerms, Hits, type Terms } from './hits.js'
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

const WHERE = 'fastify-rate-limit: store'
const NAMES = { limit: 'max', windowMs: 'timeWindow' }
/** After the name, in the counts of routes. */
const ROUTES = '-routes'
const LONGEST_NAME = 64 - ROUTES.length

/** @throws SluiceError `INVALID_POLICY` */
export function routeStores(options: BridgeOptions): RouteStoreClass {
  checkOptions(WHERE, options)
  const { name = 'fastify-rate-limit', store = memoryStore() } = options
  if (name.length > LONGEST_NAME) {
    const remedy = `its routes count as name${ROUTES}, which has at most 64`
    invalidPolicy(WHERE, 'name', `1 to ${LONGEST_NAME} letters, digits, "_" or "-"`, name, remedy)
  }
  const ofPlugin = new Hits(name, NAMES, { ...options, name, store })
  // Another name, so that no key of a client equals a route with the key of another.
  const ofRoutes = new Hits(name, NAMES, { ...options, name: name + ROUTES, store })
  return class SluiceStore extends RouteCounts {
    constructor(settings: object) {
      super(settings, ofPlugin, ofRoutes)
    }
  }
}

class RouteCounts implements RouteStore {
  readonly #settings: RouteSettings
  readonly #hits: Hits
  readonly #ofRoutes: Hits
  /** Before each key. */
  readonly #route: string
  /** The number of stores made for each route, where they have no group. */
  readonly #made = new Map<string, number>()

  constructor(settings: RouteSettings, hits: Hits, ofRoutes: Hits, route = '') {
    this.#settings = settings
    this.#hits = hits
    this.#ofRoutes = ofRoutes
    this.#route = route
    this.#check()
  }

  incr(key: string, callback: Callback, timeWindow: number, max: number): void {
    this.#incr(key, timeWindow, max).then((hits) => callback(null, hits), callback)
  }

  read(key: string, callback: Callback, timeWindow: number, max: number): void {
    this.#read(key, timeWindow, max).then((hits) => callback(null, hits), callback)
  }

  child(routeOptions: object): RouteStore {
    for (const field of IGNORED) {
      const value = (routeOptions as Record<string, unknown>)[field]
      if (value !== undefined)
        invalidPolicy(WHERE, field, 'none in a route, as the store of the plugin counts it', value)
    }
    return new RouteCounts(routeOptions, this.#ofRoutes, this.#ofRoutes, this.#routeOf(routeOptions))
  }

  /**
   * A route, or its group, before a key. None with a key equals another one, as JSON ends by itself.
   *
   * Limiters of `createRateLimit` and `rateLimit` have no route, and the versions of a route have one: their order tells them
   * apart, in every process alike.
   */
  #routeOf({ groupId, routeInfo = {} }: RouteSettings): string {
    if (typeof groupId === 'string') return JSON.stringify([groupId])
    const route = [routeInfo.method ?? '', routeInfo.url ?? '']
    const id = JSON.stringify(route)
    const earlier = this.#made.get(id) ?? 0
    this.#made.set(id, earlier + 1)
    return earlier === 0 ? id : JSON.stringify([...route, earlier])
  }

  async #incr(key: string, timeWindow: number, max: number): Promise<RouteHits> {
    const terms = this.#termsFor(max, timeWindow)
    const { used, waitMs, verdict } = await this.#hits.take(terms, this.#route + this.#hits.keyOf(key))
    // The peer bans by the number of refused requests, which a log does not count.
    const isBanned = verdict?.reason === 'banned' && terms.block
    return { current: isBanned ? max + isBanned.after : used, ttl: waitMs ?? timeWindow }
  }

  async #read(key: string, timeWindow: number, max: number): Promise<RouteHits> {
    const hit = await this.#hits.look(this.#termsFor(max, timeWindow), this.#route + this.#hits.keyOf(key))
    return { current: hit.used, ttl: hit.used === 0 ? 0 : (hit.waitMs ?? timeWindow) }
  }

  #check(): void {
    const { max, timeWindow, exponentialBackoff } = this.#settings
    if (exponentialBackoff) {
      const remedy = 'use ban, or the bans of @sluice/fastify, which grow'
      invalidPolicy(WHERE, 'exponentialBackoff', 'false', exponentialBackoff, remedy)
    }
    if (typeof timeWindow === 'number') checkMs(WHERE, 'timeWindow', timeWindow, 1)
    if (typeof max === 'number' && typeof timeWindow === 'number')
      checkTerms(this.#hits, this.#termsFor(max, timeWindow))
  }

  #termsFor(max: number, timeWindow: number): Terms {
    const { ban, continueExceeding } = this.#settings
    return {
      limit: max,
      windowMs: timeWindow,
      chargesRefusals: continueExceeding === true,
      // The peer answers `ban` refused requests by 429, and bans the next.
      block: typeof ban === 'number' && ban >= 0 ? { after: ban + 1, forMs: timeWindow } : undefined,
    }
  }
}

/** Options of a route that the peer does not read where there is a store. */
const IGNORED = ['cache', 'nameSpace', 'redis', 'store'] as const
