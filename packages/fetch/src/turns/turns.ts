import {
  concurrency,
  createLimiter,
  type Limiter,
  memoryStore,
  SluiceError,
  type Units,
  type Verdict,
} from '@sluice/core'
import type { OutboundOptions } from '../options.js'
import type { Quota } from '../quota/quota-types.js'
import { PACED, SENT, SLOWED, SLOWING, sentIn, sharedLimits, slowedIn, slowedIntervalMs, slowerBy } from './cells.js'
import { Learned } from './learned.js'
import { Progress } from './progress.js'
import type { Turn, TurnOptions } from './turn.js'

/** How long the first request of a key is alone, so that its response tells the limits before others follow. */
const FIRST_ALONE_MS = 1000
/** Two requests that the same refusal slowed differ by what drains meanwhile. */
const SLOWED_TOLERANCE = 50
const LEAST_HOLD_MS = 1000
/** Requests of one key that wait in a process. */
const MAX_WAITING = 100_000
/** Keys that a process has in mind. */
const MAX_KEYS = 10_000
const LONGEST_TIMER_MS = 60_000

/**
 * Gives requests their turns, a key at a time.
 *
 * A process has one request of each key at the store, so that its own order is exact and its pace is up to date: the others wait for
 * the permit of `#order`. The store counts all processes together. A service's wish for a pause is a block of the key.
 */
export class Turns {
  readonly #limiter: Limiter
  readonly #order: Limiter
  readonly #options: OutboundOptions
  readonly #keys = new Map<string, Learned>()

  constructor(options: OutboundOptions) {
    const { name = 'fetch', store = memoryStore(), limits = [], sharedTurns = true } = options
    this.#options = options
    this.#limiter = createLimiter({ name, store, limits: [...limits, ...sharedLimits()], sharedTurns })
    this.#order = createLimiter({ name, store: memoryStore(), limits: [concurrency({ limit: 1, ttl: '1d' })] })
  }

  /** Waits for a turn. @throws SluiceError `WAIT_EXCEEDED`; the reason of the signal */
  async take(key: string, options: TurnOptions): Promise<Turn> {
    const learned = this.#learnedOf(key)
    if (learned.waiting >= MAX_WAITING) throw this.#full(options.origin)
    const progress = new Progress(this.#limiter, this.#options, key, options, learned)
    learned.waiting++
    try {
      return await this.#take(key, options, learned, progress)
    } catch (error) {
      throw error instanceof SluiceError && error.code === 'WAIT_EXCEEDED' ? await progress.tooLong(error) : error
    } finally {
      learned.waiting--
      progress.end()
    }
  }

  #full(origin: string): SluiceError {
    const { name = 'fetch' } = this.#options
    const message = `policy "${name}": fetch of ${origin}: ${MAX_WAITING} requests wait already`
    return new SluiceError('WAIT_EXCEEDED', message)
  }

  async #take(key: string, options: TurnOptions, learned: Learned, progress: Progress): Promise<Turn> {
    const { signal, priority, fairBy } = options
    const permit = await this.#order.acquire(
      key,
      given({ signal, priority, fairBy, size: MAX_WAITING, maxWait: progress.left }),
    )
    const release = () => void this.#order.release(permit)
    try {
      const verdict = await this.#admission(key, options, learned, progress)
      const now = performance.now()
      const isAlone = !learned.isKnown(now)
      learned.inFlight++
      if (!isAlone) release()
      else setTimeout(release, FIRST_ALONE_MS).unref()
      return {
        key,
        sentAt: now,
        slowed: slowedIn(verdict) ?? 0,
        sentInLastSecond: sentIn(verdict),
        release: isAlone ? release : () => {},
      }
    } catch (error) {
      release()
      throw error
    }
  }

  /** Waits for the store, and for what this process knows to be left. */
  async #admission(key: string, options: TurnOptions, learned: Learned, progress: Progress): Promise<Verdict> {
    const { signal, priority } = options
    let slowed = 0
    for (;;) {
      await this.#room(learned, progress, signal)
      const interval = () =>
        Math.round(1000 * Math.max(slowedIntervalMs(slowed), learned.intervalMs(performance.now())))
      const paced = interval()
      const cost = { ...this.#requests(1), [SENT]: 1, [PACED]: paced }
      const verdict = await this.#limiter.acquire(key, given({ cost, signal, priority, maxWait: progress.left }))
      slowed = slowedIn(verdict) ?? slowed
      // A block may have begun while it waited for the requests before it.
      if (verdict.delayMs > 0 && (await this.#limiter.peek(key)).block) {
        await this.#limiter.refund(key, verdict)
        continue
      }
      if (interval() > paced) await verdict.settle({ [PACED]: interval() })
      return verdict
    }
  }

  async #room(learned: Learned, progress: Progress, signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      const waitMs = learned.waitMs(performance.now())
      if (waitMs <= 0) return
      progress.check(waitMs)
      await Promise.race([learned.nextAnswer(), pause(Math.min(waitMs, LONGEST_TIMER_MS), signal)])
    }
  }

  /** Takes in the response to a request that had its turn, before any other request follows it. */
  async answered(turn: Turn, quota: Quota | undefined, isRefusal = false): Promise<void> {
    const learned = this.#learnedOf(turn.key)
    learned.answered(quota, turn.sentAt, performance.now())
    const holdMs = quota?.holdMs ?? 0
    try {
      if (holdMs > 0) await this.#hold(turn.key, holdMs, isRefusal)
      else if (isRefusal) await this.#slow(turn)
    } catch {
      // The store is away, and the response is there: this process alone waits.
      learned.hold(Math.max(holdMs, LEAST_HOLD_MS), performance.now())
    } finally {
      turn.release()
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

  /** Slows all down, once for all requests that were in flight. */
  async #slow({ key, slowed, sentInLastSecond }: Turn): Promise<void> {
    const now = slowedIn(await this.#limiter.peek(key))
    if (now === undefined || now > slowed + SLOWED_TOLERANCE) return
    const by = slowerBy(now, sentInLastSecond)
    const cost = { ...this.#requests(0), [SLOWED]: by, [SLOWING]: 1 }
    if (!(await this.#limiter.consume(key, { cost })).allowed) return
    await this.#hold(key, Math.max(LEAST_HOLD_MS, slowedIntervalMs(now + by)), true)
  }

  /** Requests are a unit only where a limit counts them. */
  #requests(requests: number): Units {
    return this.#options.limits?.some(({ unit }) => unit === 'requests') ? { requests } : {}
  }

  #learnedOf(key: string): Learned {
    const learned = this.#keys.get(key) ?? new Learned(this.#options.pace ?? 'burst')
    // The last one used is the last one of the map.
    this.#keys.delete(key)
    this.#keys.set(key, learned)
    for (const [other, { inFlight, waiting }] of this.#keys) {
      if (this.#keys.size <= MAX_KEYS || inFlight + waiting > 0) break
      this.#keys.delete(other)
    }
    return learned
  }
}

/** Without fields that are undefined. */
function given<T extends object>(options: T): T {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as T
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted()
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    }
    const abort = () => {
      end()
      reject(signal?.reason)
    }
    const timer = setTimeout(() => {
      end()
      resolve()
    }, ms)
    signal?.addEventListener('abort', abort, { once: true })
  })
}
