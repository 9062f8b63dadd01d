import type { FiguresReporting } from '../store/figures-reporting.js'
import type { StoreListOptions } from '../store/list.js'
import { type Duration, durationMs } from '../util/duration.js'
import { invalidPolicy } from '../util/errors.js'
import { givenClock } from '../util/given-clock.js'
import { knownOptions, optionalFunction, wholeNumber } from '../util/validate.js'
import type { StoreWarningsOption } from '../util/warnings.js'
import type { StateListener } from './health/breaker.js'

export interface RedisStoreOptions extends StoreListOptions {
  /**
   * Returns the time in whole ms, the same for every process.
   *
   * For tests, and for applications with their own clock. A clock in seconds is rejected.
   * @default Redis's own clock
   */
  readonly clock?: () => number
  /**
   * How long a sent decision waits for its reply, in ms or as a duration.
   *
   * Up to ten times as long while replies to other decisions keep coming.
   * @default 100
   */
  readonly timeout?: Duration
  /**
   * How long decisions wait for the first connection, in ms or as a duration, from when the store is made.
   *
   * In a cluster, also for the first connection to each master, from when it is first needed. They do not wait once a
   * connection is refused. After a freeze of the process, as of functions between requests, they wait as long for a new
   * connection in place of a lost one. Decisions on IP addresses wait as long for the first read of the index of blocks.
   * @default 5000
   */
  readonly connectTimeout?: Duration
  /** Maximum decisions per script execution, 1 to 1,000. @default 64 */
  readonly batch?: number
  /**
   * The start of every key. It may contain one hash tag, such as `{limits}:`, which puts all keys on one slot. @default
   * 'sluice:'
   */
  readonly prefix?: string
  /**
   * Whether this process repeats a refusal until its retry time, for at most a second.
   *
   * A flood of refused requests then costs Redis almost nothing. Changes by this store take effect at once; room made
   * by other processes is noticed within that second.
   * @default true
   */
  readonly denyCache?: boolean
  /**
   * Whether one script may decide keys of several slots of a cluster's master.
   *
   * That takes a fraction of the time of a script per slot. It needs Redis 7.0 or later, which the store tests first.
   * Set `false` for proxies and services that require declared keys. No effect without a cluster.
   * @default true
   */
  readonly undeclaredKeys?: boolean
  /**
   * Called as `(state, cause, node)` when the store stops using Redis, and when it resumes.
   *
   * The state is `'unavailable'`, with the error that caused it, or `'available'`. In a cluster, it is called for each
   * master, by address. An error that it throws becomes a process warning.
   */
  readonly onStateChange?: StateListener
  /**
   * Whether refusals are counted by identity, for `offenders()`.
   *
   * For each policy that refuses, each process uses up to 1 MB and Redis up to 8 MB.
   * @default false
   */
  readonly offenders?: boolean
  /**
   * `liveFigures()`: this process reports its figures to Redis each second, for a console.
   *
   * One store of a process is enough: the figures are of all its limiters, whichever store they use.
   * @default none
   */
  readonly report?: FiguresReporting
  /** Silences individual warnings of this store: `{ SLUICE_EVICTION: false }`. */
  readonly warnings?: StoreWarningsOption
}

/**
 * A key's slot is that of its first hash tag. Any other brace before the identity's own tag would put keys of one
 * identity on different slots.
 */
const PREFIX = /^[^{}]*(\{[^{}]+\}[^{}]*)?$/

/** Lua can pass at most a few thousand keys to one command. */
const MAX_IN_BATCH = 1000

/** Options after validation; those of the connection and of decisions have their defaults. */
export type CheckedOptions = Omit<RedisStoreOptions, 'timeout' | 'connectTimeout'> &
  Required<Pick<RedisStoreOptions, 'batch' | 'prefix' | 'denyCache' | 'undeclaredKeys'>> & {
    readonly timeoutMs: number
    readonly connectTimeoutMs: number
  }

const OPTIONS = [
  'clock',
  'timeout',
  'connectTimeout',
  'batch',
  'prefix',
  'denyCache',
  'undeclaredKeys',
  'onStateChange',
  'offenders',
  'report',
  'allow',
  'deny',
  'warnings',
]
const NO_ROOM = 'it is for memoryStore; the room of Redis is its maxmemory'
/** Hints for options of `memoryStore`, since stores are exchanged for each other. */
const OF_MEMORY = {
  maxKeys: NO_ROOM,
  maxBytes: NO_ROOM,
  persist: 'it is for memoryStore; Redis keeps blocks and lists by itself',
}

/** @throws SluiceError `INVALID_POLICY` */
export function checkedOptions(options: RedisStoreOptions): CheckedOptions {
  knownOptions('redisStore', options, OPTIONS, OF_MEMORY)
  const clock = givenClock('redisStore', options.clock)
  optionalFunction('redisStore', 'onStateChange', options.onStateChange)
  const { prefix = 'sluice:', denyCache = true, undeclaredKeys = true } = options
  const { timeout = 100, connectTimeout = 5000, batch: max = 64, ...others } = options
  const timeoutMs = durationMs('redisStore', 'timeout', timeout)
  const connectTimeoutMs = durationMs('redisStore', 'connectTimeout', connectTimeout)
  const batch = wholeNumber('redisStore', 'batch', max, 1, MAX_IN_BATCH)
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    invalidPolicy('redisStore', 'prefix', 'a string without braces but those of one hash tag, such as "{app}:"', prefix)
  }
  for (const [field, value] of Object.entries({ denyCache, undeclaredKeys })) {
    if (typeof value !== 'boolean') invalidPolicy('redisStore', field, 'true or false', value)
  }
  if (others.report !== undefined && typeof others.report?.start !== 'function') {
    invalidPolicy('redisStore', 'report', 'liveFigures(), which reports the figures of this process', others.report)
  }
  return { ...others, ...(clock && { clock }), prefix, timeoutMs, connectTimeoutMs, batch, denyCache, undeclaredKeys }
}
