import { SluiceError } from '@sluice/core'
import { freeName, type InheritingOptions, inheritOptions } from '@sluice/core/http'
import type { FastifyRequest } from 'fastify'
import { type FastifyRateLimitOptions, type RateLimitHook, rateLimitHook } from './hook.js'
import { checkedPhase, type Phase } from './phase.js'

/** A route's own options of its limiter. */
export interface RouteOptions extends InheritingOptions<FastifyRequest> {
  /** The hook of Fastify in which the limiter runs. @default the plugin's */
  readonly hook?: Phase
  /**
   * Routes of one group share one limiter: 1 to 64 letters, digits, `_` and `-`.
   *
   * The first route of a group that is added has its options; the others name only the group.
   */
  readonly group?: string
}

/** The limiter of a route, and when it runs. */
export interface RouteLimiter {
  readonly phase: Phase
  readonly hook: RateLimitHook
}

/** The limiters of the routes of an app: one for each object of options, and one for each group. */
export class RouteLimiters {
  readonly #plugin: FastifyRateLimitOptions
  readonly #phase: Phase
  readonly #byOptions = new Map<unknown, RouteLimiter>()
  readonly #byGroup = new Map<string, RouteLimiter>()
  readonly #taken: Set<string>

  /** `phase`: the default hook of limiters. */
  constructor(plugin: FastifyRateLimitOptions, phase: Phase) {
    this.#plugin = plugin
    this.#phase = phase
    this.#taken = new Set([plugin.name ?? 'default'])
  }

  /**
   * The limiter of a route's `config.rateLimit`. Undefined with `false`. The HEAD route that Fastify adds beside GET brings the
   * same object, and so has the same limiter.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  of(own: unknown, where: () => string): RouteLimiter | undefined {
    return own === false ? undefined : (this.#byOptions.get(own) ?? this.#add(own, where()))
  }

  #add(own: unknown, where: string): RouteLimiter {
    const checked: RouteOptions = checkedOptions(`rateLimit of ${JSON.stringify(where)}`, own, ' or false')
    const { hook: phase = this.#phase, group, ...options } = checked
    const limiter =
      group === undefined
        ? { phase: checkedPhase(phase), hook: this.hookFor(options, where) }
        : this.#ofGroup(group, checkedPhase(phase), options)
    this.#byOptions.set(own, limiter)
    return limiter
  }

  hookFor(own: RouteOptions, where: string): RateLimitHook {
    const place = { where: `rateLimit of ${JSON.stringify(where)}`, from: 'the plugin' }
    const merged = inheritOptions(place, this.#plugin, own)
    // Limiters of one name on one store may be one limiter, so on the shared store each has a name of its own.
    const isAlone = own.store !== undefined || this.#plugin.store === undefined
    if (own.name !== undefined || isAlone) return rateLimitHook(merged)
    const name = freeName(where.replace(/^\/|\/$/g, '') || 'root', this.#taken)
    const hook = rateLimitHook({ ...merged, name })
    this.#taken.add(name)
    return hook
  }

  #ofGroup(group: string, phase: Phase, own: RouteOptions): RouteLimiter {
    const known = this.#byGroup.get(group)
    if (known) {
      const others = Object.keys(own)
      if (others.length === 0) return known
      throw new SluiceError(
        'INVALID_POLICY',
        `rateLimit: group "${group}": expected no options beside group, got ${others.join(', ')} (the first route of the group has them)`,
      )
    }
    if (typeof group !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(group)) {
      throw new SluiceError('INVALID_POLICY', 'rateLimit: group: expected 1 to 64 letters, digits, "_" or "-"')
    }
    const named = own.name === undefined ? { ...own, name: freeName(group, this.#taken) } : own
    const limiter = { phase, hook: this.hookFor(named, group) }
    this.#taken.add(named.name as string)
    this.#byGroup.set(group, limiter)
    return limiter
  }
}

/**
 * Not an array, a map or a promise either, which have none of the options: the plugin's limits would hold in silence.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkedOptions<Options extends object>(where: string, own: unknown, or = ''): Options {
  if (Object.prototype.toString.call(own) === '[object Object]') return own as Options
  const shown =
    own === null || typeof own === 'number' || typeof own === 'boolean'
      ? own
      : Array.isArray(own)
        ? 'an array'
        : typeof own
  throw new SluiceError('INVALID_POLICY', `${where}: expected an object of options${or}, got ${shown}`)
}

/** A name of one route alone. Requests come in another order in each process, so a number could be another route's there. */
export function routeName({ routeOptions: { url = '', method } }: FastifyRequest): string {
  const methods = [method].flat().map((each) => (each === 'HEAD' ? 'GET' : each))
  return [url, ...new Set(methods)].join(' ')
}
