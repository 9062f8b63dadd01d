import { type Channel, channel } from 'node:diagnostics_channel'
import type { MadeAt } from './caller.js'
import { invalidPolicy } from './errors.js'
import { processWarning } from './process-warning.js'
import { isThenable } from './thenable.js'

/**
 * How many watch this process: listeners of any event, and counters. While there are none, they cost a decision one comparison.
 * `isCounting`: whether counters are among them. `ofDecisions`: how many listen to events that come with each decision.
 */
export const watchers = { total: 0, isCounting: false, ofDecisions: 0 }

/** The events that tools get by `node:diagnostics_channel`, each on a channel `sluice:<name>`. */
const ON_CHANNELS = [
  'decision',
  'refused',
  'strike',
  'ban',
  'block',
  'unblock',
  'ban-evicted',
  'change',
  'waited',
  'store',
  'outbound',
  'policies-reloaded',
  'warning',
] as const

// Referenced here: Node forgets channels without references.
const channels = new Map<string, Channel>(ON_CHANNELS.map((name) => [name, channel(`sluice:${name}`)]))
const decisions = channels.get('decision') as Channel
const refusals = channels.get('refused') as Channel

/** Whether anything watches decisions. Called with each of them. */
export function isWatched(): boolean {
  return watchers.total !== 0 || decisions.hasSubscribers || refusals.hasSubscribers
}

/** Events that may come with each decision. */
const OF_DECISIONS: readonly string[] = ['decision', 'refused', 'near-limit']

/** Whether there is a listener for decisions: counters alone do not. */
export function hasDecisionListeners(): boolean {
  return watchers.ofDecisions !== 0 || decisions.hasSubscribers || refusals.hasSubscribers
}

/** Between two warnings of one listener that fails: it may do so with each decision. */
const WARN_EVERY_MS = 60_000

/** One listener of one event. */
interface Entry {
  readonly listener: (event: never) => unknown
  isOn: boolean
  /** By the performance clock. */
  warnedAt: number
}

const NONE: readonly Entry[] = []

/** The listeners that the events of a source may have. */
export interface Audience<Events extends object> {
  /** Whether there is a listener for it. Events are made only then. */
  hasListeners(name: keyof Events & string): boolean
  send<Name extends keyof Events & string>(name: Name, event: Events[Name]): void
  /** Whether the process is not warned of listeners that fail. */
  isSilent: boolean
  /** Where the source was made, if it has no name. */
  readonly madeAt: MadeAt | undefined
}

/**
 * The listeners of one source of events, such as a limiter, and beyond it those of the whole process and the channels of
 * `node:diagnostics_channel`. A listener that fails affects neither the source nor other listeners.
 */
export class Listeners<Events extends object> implements Audience<Events> {
  readonly #where: string
  readonly #names: readonly string[]
  /** Undefined for the listeners of the whole process. */
  readonly #wider: Audience<Events> | undefined
  /** Lists are replaced, not changed: an event that is being sent goes on to those that listened before. */
  #byName: Map<string, readonly Entry[]> | undefined
  isSilent = false
  readonly madeAt: MadeAt | undefined

  /** `names`: the events that there are here. */
  constructor(
    where: string,
    names: readonly (keyof Events & string)[],
    wider: Audience<Events> | null = everywhere,
    madeAt?: MadeAt,
  ) {
    this.#where = where
    this.#names = names
    this.#wider = wider ?? undefined
    this.madeAt = madeAt
  }

  /**
   * Returns a function that ends it. A second call of that does nothing.
   *
   * @throws SluiceError `INVALID_POLICY`
   */
  on<Name extends keyof Events & string>(name: Name, listener: (event: Events[Name]) => unknown): () => void {
    const where = `${this.#where}: on`
    if (!this.#names.includes(name)) invalidPolicy(where, 'event', `one of ${this.#names.join(', ')}`, name)
    if (typeof listener !== 'function') invalidPolicy(where, name, 'a function', listener)
    const entry: Entry = { listener, isOn: true, warnedAt: Number.NEGATIVE_INFINITY }
    this.#byName ??= new Map()
    const byName = this.#byName
    byName.set(name, [...(byName.get(name) ?? NONE), entry])
    const ofDecisions = OF_DECISIONS.includes(name) ? 1 : 0
    watchers.total++
    watchers.ofDecisions += ofDecisions
    return () => {
      if (!entry.isOn) return
      entry.isOn = false
      watchers.total--
      watchers.ofDecisions -= ofDecisions
      const others = (byName.get(name) ?? NONE).filter((other) => other !== entry)
      if (others.length > 0) byName.set(name, others)
      else byName.delete(name)
    }
  }

  hasListeners(name: keyof Events & string): boolean {
    if (this.#byName?.has(name)) return true
    return this.#wider ? this.#wider.hasListeners(name) : channels.get(name)?.hasSubscribers === true
  }

  send<Name extends keyof Events & string>(name: Name, event: Events[Name]): void {
    for (const entry of this.#byName?.get(name) ?? NONE) {
      // A listener before it may have ended it.
      if (entry.isOn) this.#call(entry, name, event)
    }
    if (this.#wider) this.#wider.send(name, event)
    // An error that a subscriber throws there ends the process, as Node has it.
    else channels.get(name)?.publish(event)
  }

  #call(entry: Entry, name: string, event: unknown): void {
    try {
      const returned = entry.listener(event as never)
      if (returned !== undefined && isThenable(returned)) {
        Promise.resolve(returned).catch((error) => this.#failed(entry, name, error))
      }
    } catch (error) {
      this.#failed(entry, name, error)
    }
  }

  #failed(entry: Entry, name: string, error: unknown): void {
    const now = performance.now()
    if (this.isSilent || now - entry.warnedAt < WARN_EVERY_MS) return
    entry.warnedAt = now
    const what = error instanceof Error ? error.message : String(error)
    // Not sent as an event: a listener for warnings that fails would get it without end.
    const message = `${this.#where}: listener of "${name}": ${what}`
    processWarning('SLUICE_LISTENER_FAILED', this.madeAt?.withPlace(message) ?? message)
  }
}

/** The listeners of every source of this process. */
// biome-ignore lint/suspicious/noExplicitAny: each source has events of its own
export const everywhere: Listeners<any> = new Listeners('events', [...ON_CHANNELS, 'near-limit'], null)
