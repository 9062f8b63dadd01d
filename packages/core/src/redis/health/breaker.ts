import type { StoreEvent } from '../../store/events.js'
import { SluiceError } from '../../util/errors.js'
import type { Audience } from '../../util/listeners.js'
import { warnOfListener } from '../../util/warn-on-rejection.js'
import type { StoreWarning, Warnings } from '../../util/warnings.js'
import { OutageWarnings } from '../warnings/outage-warnings.js'

/** Whether decisions are asked of Redis (a closed breaker) or not (an open one). */
export type StoreState = 'available' | 'unavailable'

/**
 * Called when a store stops asking Redis, with what went wrong, and when it asks again. In a cluster for each master: `node`
 * is its address.
 */
export type StateListener = (state: StoreState, cause: Error | undefined, node: string) => unknown

/** So many runs in a row have to fail: one may have met a hiccup, and each costs its decisions the deadline. */
const FAILURES = 3
/** Between probes, give or take a fifth: processes that lost Redis together must not come back as one. */
const PROBE_EVERY_MS = 250

export interface BreakerOptions {
  /** The master that keeps a slot; always the same without a cluster. */
  readonly nodeOf: (slot: number) => string
  /** Resolves if a script that writes this key runs, which leaves nothing behind. */
  readonly probe: (key: string) => Promise<unknown>
  /** Calls back when there is a connection, at once or later. Returns how to call that off. */
  readonly whenReady: (callback: () => void) => () => void
  readonly onStateChange: StateListener | undefined
  readonly listeners: Audience<{ store: StoreEvent }>
  readonly warn: Warnings<StoreWarning>['emit']
}

/**
 * Keeps decisions from waiting for a Redis that is known not to answer. Opens after some failures in a row, or
 * at once with the connection; then probes in the background, and closes when a probe succeeds. Each master of
 * a cluster is judged by itself. Costs nothing while all is healthy.
 */
export class Breaker {
  readonly #options: BreakerOptions
  /** The masters with failures since their last success; empty while all are healthy. */
  readonly #circuits = new Map<string, Circuit>()
  readonly #warnings: OutageWarnings
  #isEnded = false
  #since = Date.now()

  constructor(options: BreakerOptions) {
    this.#options = options
    this.#warnings = new OutageWarnings(options.warn)
  }

  get state(): StoreState {
    return this.cause ? 'unavailable' : 'available'
  }

  /** Since when the state is as it is: ms since the epoch, by the clock of this machine. */
  get since(): number {
    return this.#since
  }

  /** Why decisions are not asked of a master. */
  get cause(): SluiceError | undefined {
    for (const { cause } of this.#circuits.values()) if (cause) return cause
    return undefined
  }

  /** What decisions on a slot fail with, while they need not be tried. */
  causeFor(slot: number): SluiceError | undefined {
    return this.#circuits.size === 0 ? undefined : this.#circuits.get(this.#options.nodeOf(slot))?.cause
  }

  succeeded(slot: number): void {
    if (this.#circuits.size === 0) return
    const node = this.#options.nodeOf(slot)
    // What was sent before it opened may be answered yet. Only a probe closes it.
    if (!this.#circuits.get(node)?.cause) this.#circuits.delete(node)
  }

  /** `probeKey` is one on the same slot. */
  failed(slot: number, error: Error, probeKey: string): void {
    if (this.#isEnded || isAboutOneKey(error)) return
    const node = this.#options.nodeOf(slot)
    const circuit = this.#circuits.get(node) ?? closedCircuit()
    this.#circuits.set(node, circuit)
    circuit.failures++
    circuit.last = error
    if (circuit.failures >= FAILURES && !circuit.cause) this.#open(node, circuit, error, probeKey)
  }

  /** The connection is known to be down. */
  lost(error: Error | undefined, probeKey: string): void {
    const node = this.#options.nodeOf(0)
    const before = this.#circuits.get(node)
    if (this.#isEnded) return
    if (before?.cause) {
      if (error) this.#warnings.failed(node, error)
      return
    }
    const circuit = closedCircuit()
    this.#circuits.set(node, circuit)
    // The last reply before the connection ended says more about the cause than its end.
    const why = before?.last ?? error
    this.#open(node, circuit, new Error(`not connected${why ? `: ${why.message}` : ''}`, { cause: why }), probeKey)
  }

  /** Ends its timers. What is open stays so. */
  end(): void {
    this.#isEnded = true
    for (const { stop } of this.#circuits.values()) stop()
  }

  #open(node: string, circuit: Circuit, error: Error, probeKey: string): void {
    if (!this.cause) this.#since = Date.now()
    // One error for all decisions until it closes: a stack for each would cost more than the decision.
    circuit.cause = new SluiceError('STORE_UNAVAILABLE', `redis: away: ${error.message}`, { cause: error })
    // Without this pause, failures that probes do not meet would open and close it again and again.
    if (circuit.isHalfOpen) this.#probeLater(node, circuit, probeKey)
    else this.#probe(node, circuit, probeKey)
    this.#warnings.failed(node, error)
    this.#notify('unavailable', error, node)
  }

  /** Probes as soon as there is a connection, and again until it succeeds. */
  #probe(node: string, circuit: Circuit, key: string): void {
    const { probe, whenReady } = this.#options
    circuit.stop = whenReady(() => {
      probe(key).then(
        () => {
          if (this.#isEnded) return
          this.#circuits.set(node, { ...closedCircuit(), isHalfOpen: true })
          if (this.state === 'available') {
            this.#since = Date.now()
            this.#warnings.ended()
          }
          this.#notify('available', undefined, node)
        },
        (error: Error) => {
          if (this.#isEnded) return
          this.#warnings.failed(node, error)
          this.#probeLater(node, circuit, key)
        },
      )
    })
  }

  #probeLater(node: string, circuit: Circuit, key: string): void {
    const timer = setTimeout(() => this.#probe(node, circuit, key), PROBE_EVERY_MS * (0.8 + 0.4 * Math.random()))
    timer.unref()
    circuit.stop = () => clearTimeout(timer)
  }

  #notify(state: StoreState, cause: Error | undefined, node: string): void {
    // In a turn of its own: a listener that fails must not affect a decision.
    const { onStateChange, listeners } = this.#options
    if (listeners.hears('store')) queueMicrotask(() => listeners.send('store', { state, cause, node }))
    if (onStateChange)
      Promise.resolve()
        .then(() => onStateChange(state, cause, node))
        .catch((error) => warnOfListener('onStateChange', error, this.#options.warn))
  }
}

interface Circuit {
  failures: number
  /** Set while it is open. */
  cause: SluiceError | undefined
  last: Error | undefined
  /** Closed by a probe, and no run has succeeded since. */
  readonly isHalfOpen: boolean
  /** Ends what waits to probe. */
  stop: () => void
}

function closedCircuit(): Circuit {
  return { failures: 0, cause: undefined, last: undefined, isHalfOpen: false, stop: () => {} }
}

/**
 * What a script says of a value that it found: of another type (`WRONGTYPE`), or not to be calculated with, by Lua or by
 * a command. Redis 6 puts before it where that was.
 */
const OF_A_VALUE =
  /^redis: (ERR (Error running script \(call to \w+\): )?(@?user_script: ?\d+: )*)?(WRONGTYPE|attempt to (?!call)|bad argument|value is not|offset is out|string exceeds)\b/

/**
 * Whether it can be a failure of one key alone, which must not open the breaker for the others. Only values cause such
 * failures; other refusals, such as of a command that is unknown or not permitted, fail every run. In doubt the breaker
 * opens: the next probe closes it, while an outage that is not seen as one would go on unnoticed.
 */
function isAboutOneKey({ message }: Error): boolean {
  return OF_A_VALUE.test(message)
}
