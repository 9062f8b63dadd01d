import {
  createLimiter,
  type Limiter,
  memoryStore,
  type OutboundEvent,
  SluiceError,
  type Units,
  type Verdict,
} from '@sluice/core'
import { acquirePart, checkedKey, type KeyedScripts, keyedScriptsOf, pause } from '@sluice/core/internal'
import { announce } from '../announce.js'
import { ALONE_MS, ANSWERED, FAILED, UNSENT } from '../learned/kernel.js'
import { Learned, type LearnedLook, type Taken } from '../learned/learned.js'
import { SharedQuota } from '../learned/shared-quota.js'
import type { OutboundOptions } from '../options.js'
import type { Quota } from '../quota/quota-types.js'
import { PACED, SENT, SLOWED, SLOWING, sentIn, sharedLimits, slowedIn, slowedIntervalMs, slowerBy } from './cells.js'
import { Order } from './order.js'
import { Progress } from './progress.js'
import type { Turn, TurnOptions } from './turn.js'

/** Two requests that the same refusal slowed differ by what drains meanwhile. */
const SLOWED_TOLERANCE = 50
const LEAST_HOLD_MS = 1000
/** Requests of one key that wait in a process. */
const MAX_WAITING = 100_000
/** Keys that a process has in mind. */
const MAX_KEYS = 10_000
/** A process that was frozen for as long after it got its turn asks again. */
const STALE_MS = 5000

/**
 * Gives requests their turns, a key at a time.
 *
 * A process has one request of each key at the store, so that its own order is exact and its pace is up to date: the others wait
 * in its `Order`. The store counts all processes together. A service's wish for a pause is a block of the key.
 */
export class Turns {
  readonly #limiter: Limiter
  readonly #options: OutboundOptions
  readonly #keys = new Map<string, Key>()
  readonly #scripts: KeyedScripts | undefined
  readonly #hasPermits: boolean

  constructor(options: OutboundOptions) {
    const { name = 'fetch', store = memoryStore(), limits = [], sharedTurns = true } = options
    this.#options = options
    this.#scripts = keyedScriptsOf(store)
    this.#limiter = createLimiter({ name, store, limits: [...limits, ...sharedLimits()], sharedTurns })
    this.#hasPermits = limits.some(({ algorithm }) => algorithm === 'concurrency')
  }

  /** Waits for a turn. @throws SluiceError `WAIT_EXCEEDED`; the reason of the signal */
  async take(key: string, options: TurnOptions): Promise<Turn> {
    const known = this.#knownOf(key)
    const { learned } = known
    if (learned.waiting >= MAX_WAITING) throw this.#full(options.origin)
    const progress = new Progress(this.#limiter, this.#options, key, options, learned)
    learned.waiting++
    try {
      return await this.#take(key, options, known, progress)
    } catch (error) {
      const isTooLong = error instanceof SluiceError && error.code === 'WAIT_EXCEEDED'
      progress.end(isTooLong ? 'refused' : 'left')
      throw isTooLong ? await progress.tooLong(error) : error
    } finally {
      learned.waiting--
      progress.end('admitted')
    }
  }

  #full(origin: string): SluiceError {
    const { name = 'fetch' } = this.#options
    const message = `policy "${name}": fetch of ${origin}: ${MAX_WAITING} requests wait already`
    return new SluiceError('WAIT_EXCEEDED', message)
  }

  async #take(key: string, options: TurnOptions, { learned, order }: Key, progress: Progress): Promise<Turn> {
    const leave = await order.enter(options, progress)
    try {
      const { verdict, taken, isFirst } = await this.#admission(key, options, learned, progress)
      if (!isFirst) leave()
      else setTimeout(leave, ALONE_MS).unref()
      const sent = { key, taken, verdict, slowed: slowedIn(verdict) ?? 0, sentInLastSecond: sentIn(verdict) }
      return {
        answered: async (quota, isRefusal = false) => {
          await this.#answered(sent, quota, isRefusal)
          if (isFirst) leave()
        },
        settle: async (actual) => void (await verdict.settle(actual)),
      }
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Waits for the limits, and then for a unit that the service has told to be left. */
  async #admission(key: string, options: TurnOptions, learned: Learned, progress: Progress): Promise<Admission> {
    const { signal, priority, cost: charged } = options
    let slowed = 0
    for (;;) {
      await this.#room(learned, progress, signal)
      const paced = Math.max(Math.round(1000 * slowedIntervalMs(slowed)), learned.intervalUs)
      const cost = { ...charged, [SENT]: 1, [PACED]: paced }
      const wait = given({ cost, signal, priority, maxWait: progress.left })
      const verdict = await acquirePart(this.#limiter, key, wait, progress.start)
      slowed = slowedIn(verdict) ?? slowed
      // A block may have begun while it waited for the requests before it.
      const isBlocked = verdict.delayMs > 0 && (await this.#limiter.peek(key)).block !== undefined
      const look = isBlocked ? undefined : await this.#taken(learned, signal)
      if (!look?.taken) {
        await this.#limiter.refund(key, verdict)
        signal?.throwIfAborted()
        continue
      }
      const needed = Math.max(Math.round(1000 * slowedIntervalMs(slowed)), look.intervalUs)
      if (needed > paced) await verdict.settle({ [PACED]: needed })
      return { verdict, taken: look.taken, isFirst: look.isFirst }
    }
  }

  /** Takes a unit now, and gives it back where its request can no longer be sent at once. */
  async #taken(learned: Learned, signal: AbortSignal | undefined): Promise<LearnedLook | undefined> {
    const before = performance.now()
    const look = await learned.take()
    const isStale = performance.now() - before > STALE_MS
    if (!look.taken || (!signal?.aborted && !isStale)) return look
    learned.answered(look.taken, undefined, UNSENT)
    return undefined
  }

  async #room(learned: Learned, progress: Progress, signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const now = performance.now()
      const waitMs = learned.waitMs(now)
      progress.check(waitMs)
      const pauseMs = learned.askAfterMs(waitMs, now)
      if (pauseMs <= 0) return
      progress.start()
      await pause(pauseMs, signal, (wake) => learned.onAnswer(wake))
    }
  }

  /** Takes in the response to a request that had its turn. */
  async #answered(sent: Sent, quota: Quota | undefined, isRefusal: boolean): Promise<void> {
    const { learned } = this.#knownOf(sent.key)
    announce(this.#options.name ?? 'fetch', outcomeOf(quota, isRefusal), quota)
    learned.answered(sent.taken, quota, quota ? ANSWERED : FAILED)
    // Without the store, permits end by themselves.
    if (this.#hasPermits) this.#limiter.release(sent.verdict).catch(() => {})
    const holdMs = quota?.holdMs ?? 0
    try {
      // A time alone says when to come back, and not how fast: else each pause would end in a burst.
      const slowedMs = isRefusal && !quota?.limits.length ? await this.#slow(sent) : 0
      const ms = Math.max(holdMs, slowedMs)
      if (ms > 0) await this.#hold(sent.key, ms, isRefusal)
    } catch {
      // The store is away, and the response is there: this process alone waits.
      learned.hold(Math.max(holdMs, LEAST_HOLD_MS), performance.now())
    }
  }

  async #hold(key: string, ms: number, isRefusal: boolean): Promise<void> {
    const { block } = await this.#limiter.peek(key)
    // A later end stays, such as that of a block by hand.
    if (block && block.remainingMs >= ms) return
    const spreadMs = Math.random() * Math.min(5000, 100 + ms / 10)
    const reason = isRefusal ? 'a pause that the service asks for' : 'units that the service says are used up'
    await this.#limiter.block(key, { for: `${Math.ceil(ms + spreadMs)}ms`, reason })
  }

  /** Slows all down, once for all requests that were in flight. Resolves to the ms for which none should be sent. */
  async #slow({ key, slowed, sentInLastSecond }: Sent): Promise<number> {
    const now = slowedIn(await this.#limiter.peek(key))
    if (now === undefined || now > slowed + SLOWED_TOLERANCE) return 0
    const by = slowerBy(now, sentInLastSecond)
    const cost = { ...this.#noRequest, [SLOWED]: by, [SLOWING]: 1 }
    if (!(await this.#limiter.consume(key, { cost })).allowed) return 0
    return Math.max(LEAST_HOLD_MS, slowedIntervalMs(now + by))
  }

  /** Requests are a unit only where a limit counts them. */
  get #noRequest(): Units {
    return this.#options.limits?.some(({ unit }) => unit === 'requests') ? { requests: 0 } : {}
  }

  #knownOf(key: string): Key {
    const known = this.#keys.get(key) ?? this.#newOf(key)
    // The last one used is the last one of the map.
    this.#keys.delete(key)
    this.#keys.set(key, known)
    for (const [other, { learned }] of this.#keys) {
      if (this.#keys.size <= MAX_KEYS || learned.inFlight + learned.waiting > 0) break
      this.#keys.delete(other)
    }
    return known
  }

  #newOf(key: string): Key {
    const { name = 'fetch', pace } = this.#options
    const shared = this.#scripts && new SharedQuota(this.#scripts, name, `key=${checkedKey('fetch', key)}`)
    return { learned: new Learned(pace === 'even', shared), order: new Order() }
  }
}

/** What this process knows of a key. */
interface Key {
  readonly learned: Learned
  readonly order: Order
}

/** A request that was sent. */
interface Sent {
  readonly key: string
  readonly taken: Taken
  readonly verdict: Verdict
  /** How far requests were slowed when it was sent. */
  readonly slowed: number
  /** The requests of all processes in the second before, this one included. */
  readonly sentInLastSecond: number
}

/** A request that may be sent. */
interface Admission {
  readonly verdict: Verdict
  readonly taken: Taken
  readonly isFirst: boolean
}

function outcomeOf(quota: Quota | undefined, isRefusal: boolean): OutboundEvent['outcome'] {
  if (!quota) return 'failed'
  if (isRefusal) return 'refused'
  return quota.isRefusal ? 'final' : 'accepted'
}

/** Without fields that are undefined. */
function given<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}
