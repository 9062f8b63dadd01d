import type { StoreListOptions } from '../store/list.js'
import { type Duration, durationMs } from '../util/duration.js'
import { invalidPolicy } from '../util/errors.js'
import { givenClock } from '../util/given-clock.js'
import { knownOptions, optionalFunction, wholeNumber } from '../util/validate.js'
import type { StoreWarningsOption } from '../util/warnings.js'
import type { StateListener } from './health/breaker.js'

export interface RedisStoreOptions extends StoreListOptions {
  /**
   * The time in whole ms, the same for every process. For tests, and for applications with a clock of their own. One in
   * seconds is rejected.
   * @default Redis's own clock
   */
  readonly clock?: () => number
  /**
   * How long a decision that was sent waits for its reply, in ms or as a duration; while replies to others keep coming, up
   * to ten times as long. @default 100
   */
  readonly timeout?: Duration
  /**
   * How long decisions wait for the first connection, in ms or as a duration, from when the store was made; in a cluster
   * also for that to each master, from when it is first needed. Not at all once it was refused. Decisions on addresses wait
   * as long for the first look at the index of blocks. @default 5000
   */
  readonly connectTimeout?: Duration
  /** Most decisions sent in one script run, 1 to 1,000. @default 64 */
  readonly batch?: number
  /** What every key starts with; one hash tag may be in it, such as `{limits}:`, and puts all keys on one slot. @default 'sluice:' */
  readonly prefix?: string
  /**
   * Whether this process repeats a refusal, until its retry time and for a second at most: a flood
   * of requests that are refused then costs Redis next to nothing. What this store changes counts at once;
   * room made by other processes is noticed within that second. @default true
   */
  readonly denyCache?: boolean
  /**
   * Whether one script may decide keys of several slots of a cluster's master, which takes a fraction of the time that a
   * script per slot does. Needs Redis 7.0 or later, as is tried first; `false` is for proxies and services that want all
   * keys of a script declared. Without a cluster it changes nothing. @default true
   */
  readonly undeclaredKeys?: boolean
  /**
   * Called when decisions are no longer asked of Redis (`'unavailable'`), with the error that decided it, and when
   * they are again (`'available'`): `(state, cause, node)`. In a cluster it is called for each master, by address.
   * What it throws becomes a warning of the process.
   */
  readonly onStateChange?: StateListener
  /**
   * Whether refusals are counted by identity, for `offenders()`: each process keeps up to a megabyte for each policy that
   * refuses, and Redis up to eight. @default false
   */
  readonly offenders?: boolean
  /** Silences warnings of this store, one by one: `{ SLUICE_EVICTION: false }`. */
  readonly warnings?: StoreWarningsOption
}

/** A key's slot is that of its first hash tag: any other brace before the identity's own would set keys of one identity apart. */
const PREFIX = /^[^{}]*(\{[^{}]+\}[^{}]*)?$/

/** Lua can hand no more than some thousand keys to one command. */
const MAX_IN_BATCH = 1000

/** Options of which those of the connection and the decisions are checked, and have their defaults. */
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
  'allow',
  'deny',
  'warnings',
]
const NO_ROOM = 'it is for memoryStore; the room of Redis is its maxmemory'
/** Options of the other store, as stores are exchanged for each other. */
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
  const batch = wholeNumber('redisStore', 'batch', max, 1)
  if (batch > MAX_IN_BATCH) invalidPolicy('redisStore', 'batch', `at most ${MAX_IN_BATCH}`, batch)
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    invalidPolicy('redisStore', 'prefix', 'a string without braces but those of one hash tag, such as "{app}:"', prefix)
  }
  for (const [field, value] of Object.entries({ denyCache, undeclaredKeys })) {
    if (typeof value !== 'boolean') invalidPolicy('redisStore', field, 'true or false', value)
  }
  return { ...others, ...(clock && { clock }), prefix, timeoutMs, connectTimeoutMs, batch, denyCache, undeclaredKeys }
}
