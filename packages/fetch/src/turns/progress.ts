import { type Duration, type Limiter, SluiceError, type Verdict, type WaitedEvent } from '@sluice/core'
import { observeWait } from '@sluice/core/internal'
import type { Learned } from '../learned/learned.js'
import type { OutboundOptions } from '../options.js'
import type { TurnOptions } from './turn.js'

const FIRST_AFTER_MS = 50
const EVERY_MS = 1000

/** The wait of one request: what is left of `maxWait`, `onWait`, and the error of a wait that is too long. */
export class Progress {
  readonly #limiter: Limiter
  readonly #options: OutboundOptions
  readonly #key: string
  readonly #turn: TurnOptions
  readonly #learned: Learned
  readonly #began = performance.now()
  #timer: NodeJS.Timeout | undefined
  #isOver = false
  #observed: ReturnType<typeof observeWait> = undefined

  constructor(limiter: Limiter, options: OutboundOptions, key: string, turn: TurnOptions, learned: Learned) {
    this.#limiter = limiter
    this.#options = options
    this.#key = key
    this.#turn = turn
    this.#learned = learned
    if (options.onWait) this.#timer = setTimeout(() => this.#report(), FIRST_AFTER_MS).unref()
  }

  get #waitedMs(): number {
    return performance.now() - this.#began
  }

  /** What is left of `maxWait`, in ms. */
  get leftMs(): number {
    return this.#turn.maxWaitMs - this.#waitedMs
  }

  get left(): Duration {
    const ms = this.leftMs
    return ms === Number.POSITIVE_INFINITY ? ms : `${Math.max(0, Math.floor(ms))}ms`
  }

  /** @throws SluiceError `WAIT_EXCEEDED` where a wait is longer than what is left */
  check(waitMs: number): void {
    if (this.#waitedMs + waitMs <= this.#turn.maxWaitMs) return
    throw new SluiceError('WAIT_EXCEEDED', 'no units are left')
  }

  /** It cannot be sent at once: its wait is observed. */
  readonly start = (): void => {
    this.#observed ??= observeWait(this.#limiter)
  }

  /** Ends it, once. */
  end(outcome: WaitedEvent['outcome']): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#observed?.(outcome)
    this.#observed = undefined
  }

  async #report(): Promise<void> {
    this.#timer = setTimeout(() => this.#report(), EVERY_MS).unref()
    const verdict = await this.#verdict()
    // Its wait may have ended meanwhile.
    if (this.#isOver) return
    const { origin } = this.#turn
    const { waiting } = this.#learned
    const [waitedMs, retryAfterMs] = [this.#waitedMs, this.#retryAfterMs(verdict)]
    this.#options.onWait?.({ origin, waitedMs, waiting, retryAfterMs, reason: this.#reason(verdict) })
  }

  /** What it waits for now; undefined while the store is away. */
  #verdict(): Promise<Verdict | undefined> {
    return this.#limiter.peek(this.#key, { cost: this.#turn.cost }).catch(() => undefined)
  }

  #retryAfterMs(verdict: Verdict | undefined): number | undefined {
    const own = this.#learned.waitMs(performance.now())
    return verdict?.retryAfterMs === undefined ? undefined : Math.max(verdict.retryAfterMs, own)
  }

  #reason(verdict: Verdict | undefined): string {
    if (!verdict) return 'its store'
    const { block, limits, reason, retryAfterMs = 0 } = verdict
    if (block) return block.reason || 'its key is blocked'
    if (reason === 'impossible') return 'more units than a limit ever admits at once'
    const limit = limits.find((report) => (report.retryAfterMs ?? 0) > 0 && report.retryAfterMs === retryAfterMs)
    return limit ? `the limit ${limit.name}` : 'the requests before it'
  }

  /** The error of a wait that is too long: what was waited for, and for how long. */
  async tooLong(cause: SluiceError): Promise<SluiceError> {
    const { name = 'fetch' } = this.#options
    const { origin, maxWaitMs } = this.#turn
    const verdict = await this.#verdict()
    const more = this.#retryAfterMs(verdict)
    const rest = more ? `, at least ${Math.ceil(more)} ms more` : ''
    const message = `policy "${name}": fetch of ${origin}: waited ${Math.round(this.#waitedMs)} ms for ${this.#reason(verdict)}${rest}: longer than maxWait, ${maxWaitMs} ms`
    return new SluiceError('WAIT_EXCEEDED', message, { cause })
  }
}
