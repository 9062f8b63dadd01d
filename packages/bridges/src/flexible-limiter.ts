import type { Verdict } from '@sluice/core'
import { checkCost, invalidPolicy, MAX_DURATION_MS, wholeNumber } from '@sluice/core/internal'
import { FlexibleResult } from './flexible-result.js'
import { HitLedger } from './hit-ledger.js'
import { checkTerms, claimName, type Hit, Hits, roundedDown, type Terms } from './hits.js'
import { type BridgeOptions, checkOptions } from './options.js'

export { FlexibleResult } from './flexible-result.js'

/** Classes of the peer, for its wrappers, which accept their own instances alone. */
export interface FlexiblePeer {
  readonly RateLimiterCompatibleAbstract?: abstract new (...args: never[]) => object
  readonly RateLimiterRes?: new (
    remaining: number,
    msBeforeNext: number,
    consumed: number,
    isFirst: boolean,
  ) => FlexibleResult
}

export interface FlexibleOptions extends Omit<BridgeOptions, 'name'> {
  /** Units per `duration`. Fractions are rounded down. 0 or less refuses everything, infinity nothing but blocked keys. */
  readonly points: number
  /** Seconds, above 0; whole milliseconds. */
  readonly duration: number
  /** Seconds for which a refused key stays refused. @default 0, until there is room */
  readonly blockDuration?: number
  /** Only `false`: requests are not delayed. @default false */
  readonly execEvenly?: boolean
  /** Names the counts, as `name` in the other bridges: letters, digits, `_`, `-`, up to 64. @default 'rlflx' */
  readonly keyPrefix?: string
  /**
   * `import * as peer from 'rate-limiter-flexible'`, so that results and limiter are instances of its classes.
   *
   * Its wrappers require that: `RateLimiterUnion`, `BurstyRateLimiter`, `insuranceLimiter` and others.
   * @default classes of this package
   */
  readonly peer?: FlexiblePeer
  /** Maximum of hits and keys that this process holds for `reward`, with some 500 bytes each. @default 10,000 */
  readonly maxHits?: number
}

export interface ConsumeOptions {
  /** Seconds of the window of this call. @default `duration` */
  readonly customDuration?: number
}

const OWN_OPTIONS = ['points', 'duration', 'blockDuration', 'execEvenly', 'keyPrefix', 'peer', 'maxHits']

const NAMES = { limit: 'points', windowMs: 'duration', forMs: 'blockDuration' }

/** Why options of the peer are none here. */
const ABSENT = {
  name: 'keyPrefix, as in rate-limiter-flexible',
  storeClient: 'store: redisStore(client)',
  redis: 'store: redisStore(client)',
  useRedisPackage: 'leave it out: redisStore(client) takes clients of ioredis and redis',
  rejectIfRedisNotReady: 'redisStore(client, { timeout }) bounds each wait',
  insuranceLimiter: "leave it out, or unavailable: { decide: 'local', share: 0.25 }",
  inMemoryBlockOnConsumed: 'leave it out: refusals are remembered for a second',
  inMemoryBlockDuration: 'leave it out: refusals are remembered for a second',
  blockOnConsumed: 'leave it out: refused hits are not counted',
  execEvenlyMinDelayMs: 'leave it out, as requests are not delayed',
}

/** A limiter with the methods of rate-limiter-flexible. Refusals reject with a `FlexibleResult`, as there. */
export class FlexibleLimiter {
  readonly points: number
  /** Seconds. */
  readonly duration: number
  readonly msDuration: number
  readonly keyPrefix: string
  readonly #hits: Hits
  readonly #ledger: HitLedger
  #msBlockDuration = 0
  readonly #Result: NonNullable<FlexiblePeer['RateLimiterRes']>

  /** @internal */
  constructor(options: FlexibleOptions) {
    const where = 'rate-limiter-flexible'
    checkOptions(where, options, OWN_OPTIONS, ABSENT)
    const {
      keyPrefix = 'rlflx',
      points,
      duration,
      blockDuration,
      execEvenly,
      peer,
      maxHits = 10_000,
      ...shared
    } = options
    checkKeyPrefix(where, keyPrefix)
    this.#hits = new Hits(keyPrefix, NAMES, { ...shared, name: keyPrefix })
    const whole = roundedDown(points)
    if (points !== Number.POSITIVE_INFINITY && !Number.isSafeInteger(whole)) {
      invalidPolicy(where, 'points', 'a whole number, of which 0 or less refuses everything', points)
    }
    this.points = whole + 0
    this.msDuration = wholeMs(where, 'duration', duration, 1)
    this.duration = duration
    this.blockDuration = blockDuration
    this.execEvenly = execEvenly
    this.keyPrefix = keyPrefix
    this.#ledger = new HitLedger(wholeNumber(where, 'maxHits', maxHits, 1))
    this.#Result = peer?.RateLimiterRes ?? FlexibleResult
    const terms = checkTerms(this.#hits, this.#terms())
    claimName(this.#hits, options.store, terms)
    if (peer?.RateLimiterCompatibleAbstract) becomeInstance(this, peer.RateLimiterCompatibleAbstract.prototype)
  }

  /** Seconds. */
  get blockDuration(): number {
    return this.#msBlockDuration / 1000
  }

  /** A limiter of the peer that it insures sets its own. */
  set blockDuration(value: number | undefined) {
    this.#msBlockDuration = wholeMs(this.#hits.where, 'blockDuration', value ?? 0, 0)
  }

  get msBlockDuration(): number {
    return this.#msBlockDuration
  }

  get execEvenly(): boolean {
    return false
  }

  set execEvenly(value: boolean | undefined) {
    if (value) invalidPolicy(this.#hits.where, 'execEvenly', 'false', value, 'use delay() or queue() of an adapter')
  }

  /** Charges points, or rejects with a `FlexibleResult`, which is no `Error`. */
  async consume(key: string | number, points = 1, options: ConsumeOptions = {}): Promise<FlexibleResult> {
    const terms = this.#terms(options)
    const text = this.#hits.keyOf(key)
    const hit = await this.#hits.take(terms, text, this.#checked(points))
    if (!hit.allowed) throw this.#result(hit, terms)
    this.#ledger.note(text, hit, terms.windowMs)
    return this.#result(hit, terms, points)
  }

  /** Charges points, or those for which there is room. Never rejects for a refusal, and blocks nothing. */
  async penalty(key: string | number, points = 1, options: ConsumeOptions = {}): Promise<FlexibleResult> {
    const terms = { ...this.#terms(options), block: undefined }
    const text = this.#hits.keyOf(key)
    const first = await this.#hits.take(terms, text, this.#checked(points))
    const room = first.verdict?.remaining ?? 0
    const hit = first.allowed || room === 0 ? first : await this.#hits.take(terms, text, room)
    if (hit.allowed) this.#ledger.note(text, hit, terms.windowMs)
    return this.#result(hit, terms, points)
  }

  /** Refunds points of the oldest hits of this process, as far as they still count. */
  async reward(key: string | number, points = 1, options: ConsumeOptions = {}): Promise<FlexibleResult> {
    const text = this.#hits.keyOf(key)
    await this.#ledger.refund(text, this.#checked(points))
    const terms = this.#terms(options)
    return this.#result(await this.#hits.look(terms, text), terms)
  }

  /** The points of a key. Null where it has none. */
  async get(key: string | number, options: ConsumeOptions = {}): Promise<FlexibleResult | null> {
    const terms = this.#terms(options)
    const hit = await this.#hits.look(terms, this.#hits.keyOf(key))
    return hit.used === 0 ? null : this.#result(hit, terms)
  }

  /** Sets the points of a key, by a reset and a charge; more than `points` block it. Others may come in between. */
  async set(key: string | number, points: number, secDuration = this.duration): Promise<FlexibleResult> {
    this.#checked(points)
    if (points > this.points) return this.#block(key, secDuration, points)
    if (secDuration !== this.duration) {
      invalidPolicy(this.#hits.where, 'secDuration', `${this.duration}, the duration of the limiter`, secDuration)
    }
    await this.delete(key)
    const terms = this.#terms()
    const text = this.#hits.keyOf(key)
    const hit = points === 0 ? await this.#hits.look(terms, text) : await this.#hits.take(terms, text, points)
    if (hit.allowed && points > 0) this.#ledger.note(text, hit, terms.windowMs)
    return this.#result(hit, terms, points)
  }

  /** Refuses a key for some seconds, in every process; 0 for ever. */
  block(key: string | number, secDuration: number): Promise<FlexibleResult> {
    return this.#block(key, secDuration, this.points + 1)
  }

  /**
   * Forgets a key, with each `customDuration` that this process has met, and ends its block. Resolves to whether it had points of
   * `duration`, or a block.
   */
  async delete(key: string | number): Promise<boolean> {
    const terms = this.#terms()
    const text = this.#hits.keyOf(key)
    const { used } = await this.#hits.look(terms, text)
    this.#ledger.forget(text)
    await Promise.all([this.#hits.forget(text), this.#hits.limiterFor(terms).unblock(text)])
    return used > 0
  }

  getKey(key: string | number): string {
    return this.keyPrefix.length > 0 ? `${this.keyPrefix}:${key}` : String(key)
  }

  parseKey(rlKey: string): string {
    return this.keyPrefix.length > 0 ? rlKey.slice(this.keyPrefix.length + 1) : rlKey
  }

  async #block(key: string | number, secDuration: number, points: number): Promise<FlexibleResult> {
    const forMs = wholeMs(this.#hits.where, 'secDuration', secDuration, 0)
    await this.#hits
      .limiterFor(this.#terms())
      .block(this.#hits.keyOf(key), { for: forMs === 0 ? Number.POSITIVE_INFINITY : forMs })
    return new this.#Result(0, forMs === 0 ? -1 : forMs, points, false)
  }

  #checked(points: number): number {
    return checkCost(this.#hits.where, 'points', points)
  }

  #terms(options: ConsumeOptions = {}): Terms {
    if (options === null || typeof options !== 'object')
      invalidPolicy(this.#hits.where, 'options', 'an object', options)
    const { customDuration } = options
    const windowMs =
      customDuration === undefined ? this.msDuration : wholeMs(this.#hits.where, 'customDuration', customDuration, 1)
    const block = this.msBlockDuration > 0 ? { after: 1, forMs: this.msBlockDuration } : undefined
    return { limit: Math.max(0, this.points), windowMs, block }
  }

  #result({ allowed, used, waitMs, verdict }: Hit, { windowMs }: Terms, charged = 0): FlexibleResult {
    // A blocked key has used all points, also of infinity.
    const remaining = Math.max(0, this.points - used || 0)
    return new this.#Result(
      remaining,
      waitMs ?? foreverMs(verdict, windowMs),
      used,
      allowed && charged > 0 && used === charged,
    )
  }
}

/** The wait for which there is no time: a block for ever is -1, as in the peer; points above the limit never fit. */
function foreverMs(verdict: Verdict | undefined, windowMs: number): number {
  return verdict?.reason === 'blocked' ? -1 : windowMs
}

function checkKeyPrefix(where: string, keyPrefix: unknown): void {
  if (typeof keyPrefix === 'string' && /^[\w-]{1,64}$/.test(keyPrefix)) return
  invalidPolicy(where, 'keyPrefix', '1 to 64 letters, digits, "_" or "-"', keyPrefix)
}

/** Milliseconds of some seconds. */
function wholeMs(where: string, field: string, seconds: number, minMs: number): number {
  // 2.3 * 1000 is 2299.9999999999995.
  const ms = typeof seconds === 'number' ? Math.round(seconds * 1000) : Number.NaN
  if (!(ms >= minMs && ms <= MAX_DURATION_MS) || Math.abs(ms / 1000 - seconds) > 1e-9) {
    const expected = `seconds of at least ${minMs / 1000} and at most ${MAX_DURATION_MS / 1000}, in whole milliseconds`
    invalidPolicy(where, field, expected, seconds)
  }
  return ms
}

/** Puts a class of the peer above that of the limiter, so that `instanceof` accepts it. */
function becomeInstance(limiter: FlexibleLimiter, above: object): void {
  const members = Object.getOwnPropertyDescriptors(FlexibleLimiter.prototype)
  Object.setPrototypeOf(limiter, Object.create(above, members))
}
