import type { StoreEvent } from '../../store/events.js'
import { SluiceError } from '../../util/errors.js'
import { freezes } from '../../util/freezes.js'
import { getOrInsert } from '../../util/get-or-insert.js'
import type { Audience } from '../../util/listeners.js'
import { warnOfListener } from '../../util/warn-on-rejection.js'
import type { StoreWarning, Warnings } from '../../util/warnings.js'
import { OutageWarnings } from '../warnings/outage-warnings.js'

/** Whether the store uses Redis (a closed breaker) or not (an open one). */
export type StoreState = 'available' | 'unavailable'

/**
 * Called when a store stops using Redis, with the error, and when it resumes. In a cluster, called for each master;
 * `node` is its address.
 */
export type StateListener = (state: StoreState, cause: Error | undefined, node: string) => unknown

/**
 * Number of consecutive failures that open the breaker. One failure may be a hiccup, but each delays its decisions by
 * the timeout.
 */
const FAILURES = 3
/**
 * Interval between probes, plus or minus a fifth: processes that lost Redis together must not return at the same
 * instant.
 */
const PROBE_EVERY_MS = 250

export interface BreakerOptions {
  /** The master of a slot; always the same without a cluster. */
  readonly nodeOf: (slot: number) => string
  /** Resolves if a script that writes this key succeeds. The script leaves nothing behind. */
  readonly probe: (key: string) => Promise<unknown>
  /** Calls back when there is a connection, at once or later. Returns a function that cancels the call. */
  readonly whenReady: (callback: () => void) => () => void
  readonly onStateChange: StateListener | undefined
  readonly listeners: Audience<{ store: StoreEvent }>
  readonly warn: Warnings<StoreWarning>['emit']
}

/**
 * A circuit breaker: decisions do not wait for a Redis that is known not to reply. It opens after several consecutive
 * failures, or at once when the connection is lost. It then probes in the background and closes when a probe succeeds.
 * Each master of a cluster has its own circuit. No overhead while all is healthy.
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

  /** When the present state began: ms since the epoch, by this machine's clock. */
  get since(): number {
    return this.#since
  }

  /** Why a master is not used; undefined if all are used. */
  get cause(): SluiceError | undefined {
    for (const { cause } of this.#circuits.values()) if (cause) return cause
    return undefined
  }

  /** The error of decisions on a slot while its circuit is open. */
  causeFor(slot: number): SluiceError | undefined {
    if (this.#circuits.size === 0) return undefined
    const node = this.#options.nodeOf(slot)
    const circuit = this.#circuits.get(node)
    if (!circuit?.cause) return undefined
    if (circuit.freezes !== freezes.count) this.#try(node, circuit)
    return circuit.isOnTrial ? undefined : circuit.cause
  }

  succeeded(slot: number): void {
    if (this.#circuits.size === 0) return
    const node = this.#options.nodeOf(slot)
    const circuit = this.#circuits.get(node)
    if (circuit?.isOnTrial) this.#close(node, circuit)
    // Commands sent before the circuit opened may still get replies. Only a probe closes it.
    else if (!circuit?.cause) this.#circuits.delete(node)
  }

  /** `probeKey`: a key on the same slot. */
  failed(slot: number, error: Error, probeKey: string): void {
    if (this.#isEnded || isAboutOneKey(error)) return
    const node = this.#options.nodeOf(slot)
    const circuit = getOrInsert(this.#circuits, node, closedCircuit)
    circuit.failures++
    circuit.last = error
    circuit.isOnTrial = false
    if (circuit.failures >= FAILURES && !circuit.cause) this.#open(node, circuit, error, probeKey)
  }

  /** Notes that the connection is down. */
  lost(error: Error | undefined, probeKey: string): void {
    const node = this.#options.nodeOf(0)
    const before = this.#circuits.get(node)
    if (this.#isEnded) return
    if (before?.cause) {
      before.isOnTrial = false
      if (error) this.#warnings.failed(node, error)
      return
    }
    const circuit = closedCircuit()
    this.#circuits.set(node, circuit)
    // The last error before the connection ended says more about the cause than the end itself.
    const why = before?.last ?? error
    this.#open(node, circuit, new Error(`not connected${why ? `: ${why.message}` : ''}`, { cause: why }), probeKey)
  }

  /** Ends the timers. Open circuits stay open. */
  end(): void {
    this.#isEnded = true
    for (const { stop } of this.#circuits.values()) stop()
  }

  #open(node: string, circuit: Circuit, error: Error, probeKey: string): void {
    if (!this.cause) this.#since = Date.now()
    // All decisions get one error until the circuit closes: a stack per decision would cost more than the decision.
    circuit.cause = new SluiceError('STORE_UNAVAILABLE', `redis: away: ${error.message}`, { cause: error })
    circuit.probeKey = probeKey
    circuit.freezes = freezes.count
    // Without this pause, failures that probes do not detect would open and close the circuit repeatedly.
    if (circuit.isHalfOpen) this.#probeLater(node, circuit)
    else this.#probe(node, circuit)
    this.#warnings.failed(node, error)
    this.#notify('unavailable', error, node)
  }

  /** Lets decisions go to Redis until one fails: probes could not run while this process was frozen. */
  #try(node: string, circuit: Circuit): void {
    circuit.freezes = freezes.count
    circuit.isOnTrial = true
    circuit.stop()
    this.#probe(node, circuit)
  }

  #close(node: string, circuit: Circuit): void {
    circuit.stop()
    this.#circuits.set(node, { ...closedCircuit(), isHalfOpen: true })
    if (this.state === 'available') {
      this.#since = Date.now()
      this.#warnings.ended()
    }
    this.#notify('available', undefined, node)
  }

  /** Probes as soon as there is a connection, and again until it succeeds. */
  #probe(node: string, circuit: Circuit): void {
    const { probe, whenReady } = this.#options
    let isStopped = false
    const callOff = whenReady(() => {
      probe(circuit.probeKey).then(
        () => {
          if (!isStopped) this.#close(node, circuit)
        },
        (error: Error) => {
          if (isStopped) return
          circuit.isOnTrial = false
          this.#warnings.failed(node, error)
          this.#probeLater(node, circuit)
        },
      )
    })
    circuit.stop = () => {
      isStopped = true
      callOff()
    }
  }

  #probeLater(node: string, circuit: Circuit): void {
    const timer = setTimeout(() => this.#probe(node, circuit), PROBE_EVERY_MS * (0.8 + 0.4 * Math.random()))
    timer.unref()
    circuit.stop = () => clearTimeout(timer)
  }

  #notify(state: StoreState, cause: Error | undefined, node: string): void {
    // Deferred: a listener that fails must not affect a decision.
    const { onStateChange, listeners } = this.#options
    if (listeners.hasListeners('store')) queueMicrotask(() => listeners.send('store', { state, cause, node }))
    if (onStateChange)
      Promise.resolve()
        .then(() => onStateChange(state, cause, node))
        .catch((error) => warnOfListener('onStateChange', error, this.#options.warn))
  }
}

interface Circuit {
  failures: number
  /** Set while the circuit is open. */
  cause: SluiceError | undefined
  last: Error | undefined
  /** A probe has closed the circuit, and no script has succeeded since. */
  readonly isHalfOpen: boolean
  /** It is open, and decisions go to Redis: this process was frozen, so that Redis may be back. */
  isOnTrial: boolean
  /** The freezes that are known to it. */
  freezes: number
  probeKey: string
  /** Cancels the next probe, or ignores the result of the present one. */
  stop: () => void
}

function closedCircuit(): Circuit {
  return {
    failures: 0,
    cause: undefined,
    last: undefined,
    isHalfOpen: false,
    isOnTrial: false,
    freezes: 0,
    probeKey: '',
    stop: () => {},
  }
}

/**
 * Errors about a stored value: it has another type (`WRONGTYPE`), or Lua or a command cannot calculate with it. Redis 6
 * prefixes them with the position in the script.
 */
const OF_A_VALUE =
  /^redis: (ERR (Error running script \(call to \w+\): )?(@?user_script: ?\d+: )*)?(WRONGTYPE|attempt to (?!call)|bad argument|value is not|offset is out|string exceeds)\b/

/**
 * Whether an error may concern one key alone and so must not open the breaker for others. Only stored values cause such
 * errors. Other refusals, such as of an unknown or forbidden command, fail every script. Unclear errors open the
 * breaker: the next probe closes it, whereas an unrecognised outage would go unnoticed.
 */
function isAboutOneKey({ message }: Error): boolean {
  return OF_A_VALUE.test(message)
}
