import {
  type BanOptions,
  createLimiter,
  type Limit,
  type Limiter,
  memoryStore,
  SluiceError,
  type Store,
  type Verdict,
} from '@sluice/core'
import {
  checkedKey,
  defaultLimit,
  getOrInsert,
  invalidPolicy,
  MAX_DURATION_MS,
  wholeNumber,
} from '@sluice/core/internal'
import type { BridgeOptions } from './options.js'

/** The numbers by which a hit is decided. */
export interface Terms {
  /** Hits per window, 0 or more. 0 refuses everything, and infinity nothing but what is blocked. Fractions are rounded down. */
  readonly limit: number
  /** Rounded down to whole milliseconds. */
  readonly windowMs: number
  /** Whether refused hits are charged too. @default false */
  readonly chargesRefusals?: boolean
  /** A block of the key after some refusals within a window. @default none */
  readonly block?: Block | undefined
}

/** The options of the peer that have the numbers, for errors. */
export interface TermNames {
  readonly limit: string
  readonly windowMs: string
  /** The length of a block. @default none: the peer has no such number */
  readonly forMs?: string
}

interface Block {
  readonly after: number
  readonly forMs: number
}

/** The result of a hit, in the terms that all peers share. */
export interface Hit {
  readonly allowed: boolean
  /** Hits within the window, with this one, also where it is refused: then it is above the limit. */
  readonly used: number
  /**
   * Milliseconds until a refused hit would be admitted, or until the key of an admitted hit is as good as new. Undefined if
   * the key is blocked for ever.
   */
  readonly waitMs: number | undefined
  /** Undefined if the limit is 0, so that nothing was asked. */
  readonly verdict: Verdict | undefined
}

/** Limiters per bridge, where the numbers come with each hit. */
const MAX_LIMITERS = 1000
/** Up to this limit hits are counted by a log, and beyond it by segments, in a count of its own. */
const LARGEST_LOG = 1000

/** Decides the hits of one bridge. All numbers are given with the hit, so limiters are made as they are met, and bounded. */
export class Hits {
  readonly name: string
  readonly where: string
  readonly #names: TermNames
  readonly #options: BridgeOptions
  readonly #store: Store
  readonly #limiters = new Map<string, Limiter>()
  /** A limiter of each count, for `forget`: those of several limits share one. At most `MAX_LIMITERS`. */
  readonly #counts = new Map<string, Limiter>()

  /** @throws SluiceError `INVALID_POLICY` */
  constructor(name: string, names: TermNames, options: BridgeOptions) {
    this.#names = names
    this.name = options.name ?? name
    this.where = `bridge "${this.name}"`
    this.#options = options
    this.#store = options.store ?? memoryStore()
    // Checks the name, the store and what to do without it, while the server starts.
    this.#makeLimiter({ limit: 1, windowMs: 60_000 })
  }

  /**
   * Charges a hit if it has room. Rejects for a wrong key or cost, never because the store is away.
   *
   * @throws SluiceError `INVALID_POLICY` for numbers that no limit can have
   */
  async take(given: Terms, key: string, cost = 1): Promise<Hit> {
    const terms = inWholes(given)
    const { block } = terms
    const endsEarly = block !== undefined && this.#mayEndEarly(terms, block)
    if (endsEarly) this.check(terms)
    const decided = endsEarly ? { ...terms, block: undefined } : terms
    const hit = hitOf(await this.#decide(decided, key, cost, 'consume'), terms, cost)
    const { reason, retryAfterMs = 0 } = hit.verdict ?? {}
    // A cost that never fits is no strike, as no limit has refused it.
    if (!block || !(reason === 'impossible' || (endsEarly && reason === 'limited'))) return hit
    const forMs = Math.max(block.forMs, retryAfterMs)
    // Of a length that hardly comes again, so not kept.
    const limiter =
      forMs === block.forMs ? this.limiterFor(terms) : this.#makeLimiter({ ...terms, block: { ...block, forMs } })
    return (await limiter.strike(key)) ? { ...hit, waitMs: forMs } : hit
  }

  /**
   * Whether a block would end before its key has room, and its refusals promise a time that is too early. Such a block is begun by a
   * command of its own, which makes it last until there is room.
   *
   * A log has room after a window, segments after less than two; of limits by `algorithm` that is unknown.
   */
  #mayEndEarly({ limit, windowMs }: Terms, { after, forMs }: Block): boolean {
    if (after > 1) return false
    if (this.#options.algorithm) return true
    return forMs < (limit > LARGEST_LOG ? 2 * windowMs : windowMs)
  }

  /** The hit that `take` would return, without charging it; `used` are the hits so far. */
  async look(given: Terms, key: string): Promise<Hit> {
    const terms = inWholes(given)
    return hitOf(await this.#decide(terms, key, 1, 'peek'), terms, 0)
  }

  /**
   * A key as it is counted. Checked before anything stands before it, as all keys that are missing would share a count.
   *
   * @throws SluiceError `INVALID_KEY`
   */
  keyOf(key: unknown): string {
    return checkedKey(this.where, key)
  }

  /** Forgets the hits of a key in the first `MAX_LIMITERS` counts that this process has met. Blocks stay. */
  async forget(key: string): Promise<void> {
    await Promise.all([...this.#counts.values()].map((limiter) => limiter.reset(key)))
  }

  /**
   * Rejects numbers that no limit can have.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  check(terms: Terms): void {
    const { limit, windowMs, block } = inWholes(terms)
    const { where } = this
    const names = this.#names
    if (limit !== Number.POSITIVE_INFINITY) wholeNumber(where, names.limit, limit, 0)
    checkMs(where, names.windowMs, windowMs, 1)
    if (block && names.forMs) checkMs(where, names.forMs, block.forMs, 0)
  }

  /**
   * The limiter of these numbers.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  limiterFor(given: Terms): Limiter {
    const terms = inWholes(given)
    const { limit, windowMs, chargesRefusals = false, block } = terms
    const id = `${limit} ${windowMs} ${chargesRefusals} ${block?.after} ${block?.forMs}`
    const known = this.#limiters.get(id)
    if (known) return known
    this.check(terms)
    const limiter = this.#makeLimiter(terms)
    // Counts are in the store: a limiter that is made again goes on with them.
    if (this.#limiters.size >= MAX_LIMITERS) this.#limiters.clear()
    this.#limiters.set(id, limiter)
    const count = `${chargesRefusals ? limit : limit > LARGEST_LOG} ${windowMs}`
    if (this.#counts.size < MAX_LIMITERS) this.#counts.set(count, limiter)
    return limiter
  }

  /** Undefined if a limit of 0 refuses without the store. */
  async #decide(terms: Terms, key: string, cost: number, method: 'consume' | 'peek'): Promise<Verdict | undefined> {
    // A cost of 0 is admitted, unless the key is blocked.
    const charged = terms.limit === Number.POSITIVE_INFINITY ? 0 : cost
    if (terms.limit !== 0) return this.limiterFor(terms)[method](key, { cost: charged })
    this.check(terms)
    return undefined
  }

  #makeLimiter({ limit: given, windowMs, chargesRefusals, block }: Terms): Limiter {
    const limit = given === Number.POSITIVE_INFINITY ? 1 : given
    const { algorithm, unavailable, warnings } = this.#options
    const shared = {
      name: this.name,
      store: this.#store,
      ...(chargesRefusals && { onDeny: 'charge' as const }),
      ...(block && { ban: banOf(block, windowMs) }),
      ...(unavailable && { unavailable }),
      ...(warnings && { warnings }),
    }
    const givenLimit = algorithm ? algorithm({ limit, window: windowMs }) : this.#defaultLimit(limit, windowMs)
    // One count for a client, whatever limit comes with a hit. Charged refusals are counted by their limit.
    const counted = chargesRefusals ? givenLimit : Object.freeze({ ...givenLimit, carry: '' })
    return createLimiter({ ...shared, limits: [counted] })
  }

  #defaultLimit(limit: number, windowMs: number): Limit<string> {
    try {
      // With its unit, as a small number would be taken for seconds, and warned of.
      return defaultLimit<string>({ limit, window: `${windowMs}ms` })
    } catch (error) {
      // The limit of a bridge is known by the bridge's name and the peer's option, not by the algorithm it became.
      if (!(error instanceof SluiceError)) throw error
      const message = error.message.replace(/^\w+: \w+(?=:)/, `${this.where}: ${this.#names.limit}`)
      throw new SluiceError(error.code, message, { cause: error })
    }
  }
}

/** Numbers of a peer as they are counted: hits and milliseconds are whole. */
function inWholes({ limit, windowMs, chargesRefusals = false, block }: Terms): Terms {
  const ofBlock = block && { after: block.after, forMs: inMs(block.forMs) }
  return { limit: roundedDown(limit), windowMs: inMs(windowMs), chargesRefusals, block: ofBlock }
}

/** Other values than numbers stay as they are, to be rejected. */
export function roundedDown(value: number): number {
  return typeof value === 'number' ? Math.floor(value) : value
}

/** Less than a millisecond is no time. */
function inMs(value: number): number {
  return roundedDown(value) || value
}

/** A block that is always as long: its state need not outlive the strikes. */
function banOf({ after, forMs }: Block, windowMs: number): BanOptions<string> {
  return { after, within: `${windowMs}ms`, for: [`${forMs}ms`], forgetAfter: `${windowMs}ms` }
}

function hitOf(verdict: Verdict | undefined, { limit, windowMs }: Terms, cost: number): Hit {
  if (!verdict) return { allowed: false, used: Math.max(1, cost), waitMs: windowMs, verdict }
  const { allowed, resetAfterMs, retryAfterMs } = verdict
  return { allowed, used: usedOf(verdict, limit, cost), waitMs: allowed ? resetAfterMs : retryAfterMs, verdict }
}

function usedOf(verdict: Verdict, limit: number, cost: number): number {
  const { allowed, reason, remaining } = verdict
  if (limit === Number.POSITIVE_INFINITY) return allowed ? cost : limit
  // Admitted without a decision, in an outage: nothing is known of other hits.
  if (allowed) return cost > 0 && verdict.cost === 0 ? Math.min(cost, limit) : limit - remaining
  // Blocked, banned, or refused in an outage, also for a look.
  return reason === 'limited' || reason === 'impossible' ? limit - remaining + cost : limit + Math.max(1, cost)
}

/**
 * Checks numbers that a peer gives when it starts, so that its server does not start with wrong ones.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function checkTerms(hits: Hits, terms: Terms): Terms {
  hits.check(terms)
  if (terms.limit > 0) hits.limiterFor(terms)
  return terms
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkMs(where: string, field: string, value: number, min: number): void {
  if (Number.isInteger(value) && value >= min && value <= MAX_DURATION_MS) return
  invalidPolicy(where, field, `whole milliseconds, from ${min} to ${MAX_DURATION_MS} (100 years)`, value)
}

/** The numbers by which each name is counted on each store. */
const termsOn = new WeakMap<Store, Map<string, string>>()

/**
 * Two bridges of one name with different numbers would not share their counts, although their names say so.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function claimName(hits: Hits, store: Store | undefined, { limit, windowMs }: Terms): void {
  if (!store) return
  const names = getOrInsert(termsOn, store, () => new Map<string, string>())
  const rate = `${limit} per ${windowMs} ms`
  const other = names.get(hits.name)
  if (other !== undefined && other !== rate) {
    invalidPolicy(
      hits.where,
      'name',
      'a name of its own',
      hits.name,
      `another bridge of this name has ${other}, this one ${rate}`,
    )
  }
  names.set(hits.name, rate)
}
