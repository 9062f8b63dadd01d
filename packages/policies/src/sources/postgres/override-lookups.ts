import { performance } from 'node:perf_hooks'
import type { MaybePromise } from '@sluice/core/internal'
import type { StoredOverride } from '../../compile/override-table.js'

/** Clients that are looked up by one statement, and statements at a time. */
const MAX_IN_BATCH = 200
const MAX_BATCHES = 2
/** Clients that wait to be looked up. Further ones are not looked up: their last known limits decide, or the document. */
const MAX_WAITING = 1000
const WARN_EVERY_MS = 60_000

/** Whose override is looked up: of the same client, the same key. */
export interface Client {
  /** The hash as eight characters. */
  readonly key: string
  readonly policy: string
  readonly kind: string
  readonly identity: string
}

/** The limits of a client in PostgreSQL. */
export interface StoredLimits {
  readonly limits: string
  readonly version: number
  readonly until: number | undefined
}

interface Held {
  readonly client: Client
  /** Undefined if there is none. */
  readonly stored: StoredOverride | undefined
  readonly generation: number
  isStale: boolean
}

interface Found {
  readonly stored: StoredOverride | undefined
}

interface Lookup {
  readonly client: Client
  readonly sinceMs: number
  /** Undefined if it is unknown. */
  readonly found: Promise<Found | undefined>
  readonly finish: (found: Found | undefined) => void
  /** Whether a change came after it was sent. */
  isOutdated: boolean
  /** Whether a request was decided without it. */
  isLate: boolean
}

export interface LookupCalls {
  /** Finds the overrides of clients, in the order of the clients. Undefined if there is none. */
  askFor(clients: readonly Client[]): Promise<readonly (StoredLimits | undefined)[]>
  /** An override was found, of a client that was decided without it. */
  onLate(): void
}

/** The overrides of the clients that were seen last. Others are looked up, many at a time, and each once at a time. */
export class OverrideLookups {
  readonly #calls: LookupCalls
  readonly #timeoutMs: number
  readonly #maxOverrides: number
  /** The one that was used last is the last. */
  readonly #held = new Map<string, Held>()
  readonly #lookups = new Map<string, Lookup>()
  #waiting: Lookup[] = []
  readonly #batches = new Set<number>()
  #isScheduled = false
  #generation = 0
  #late = 0
  #warnedAtMs = Number.NEGATIVE_INFINITY

  constructor(calls: LookupCalls, timeoutMs: number, maxOverrides: number) {
    this.#calls = calls
    this.#timeoutMs = timeoutMs
    this.#maxOverrides = maxOverrides
  }

  /** The override of a client: at once where it is known, else within the timeout. After that, the last known one. */
  find(client: Client): MaybePromise<StoredOverride | undefined> {
    const held = this.#held.get(client.key)
    const known = held && isSame(held.client, client) ? held.stored : undefined
    if (held && !held.isStale && held.generation === this.#generation) {
      this.#held.delete(client.key)
      this.#held.set(client.key, held)
      return known
    }
    const lookup = this.#lookup(client)
    const leftMs = lookup ? lookup.sinceMs + this.#timeoutMs - performance.now() : 0
    if (!lookup || leftMs <= 0 || this.#isSlow()) {
      this.#warnLate(lookup)
      return known
    }
    return this.#inTime(lookup, client, leftMs, known)
  }

  /** The override of a client has changed or ended. Without `key`, those of all clients may have. */
  outdate(key: string | undefined): void {
    if (key === undefined) {
      this.#generation++
      for (const lookup of this.#lookups.values()) lookup.isOutdated = true
      return
    }
    const held = this.#held.get(key)
    if (held) held.isStale = true
    const lookup = this.#lookups.get(key)
    if (lookup) lookup.isOutdated = true
  }

  #lookup(client: Client): Lookup | undefined {
    const pending = this.#lookups.get(client.key)
    if (pending || this.#waiting.length >= MAX_WAITING) return pending
    let finish: Lookup['finish'] = () => {}
    const found = new Promise<Found | undefined>((resolve) => {
      finish = resolve
    })
    const lookup = { client, sinceMs: performance.now(), found, finish, isOutdated: false, isLate: false }
    this.#lookups.set(client.key, lookup)
    this.#waiting.push(lookup)
    if (!this.#isScheduled) {
      this.#isScheduled = true
      // Together with all others of this turn of the event loop.
      setImmediate(() => {
        this.#isScheduled = false
        this.#send()
      })
    }
    return lookup
  }

  #send(): void {
    while (this.#waiting.length > 0 && this.#batches.size < MAX_BATCHES) {
      const batch = this.#waiting.slice(0, MAX_IN_BATCH)
      this.#waiting = this.#waiting.slice(MAX_IN_BATCH)
      // Changes until now are visible to this statement.
      for (const lookup of batch) lookup.isOutdated = false
      let sentMs = performance.now()
      while (this.#batches.has(sentMs)) sentMs += 0.001
      this.#batches.add(sentMs)
      void this.#ask(batch).finally(() => {
        this.#batches.delete(sentMs)
        this.#send()
      })
    }
  }

  async #ask(batch: readonly Lookup[]): Promise<void> {
    let found: readonly (StoredLimits | undefined)[] | undefined
    try {
      found = await this.#calls.askFor(batch.map(({ client }) => client))
    } catch {
      // The last known limits decide. The source warns of a connection that is away.
    }
    for (const [i, lookup] of batch.entries()) {
      this.#lookups.delete(lookup.client.key)
      lookup.finish(found && { stored: this.#hold(lookup, found[i]) })
    }
    if (found && batch.some(({ isLate }) => isLate)) this.#calls.onLate()
  }

  #hold({ client, isOutdated }: Lookup, found: StoredLimits | undefined): StoredOverride | undefined {
    const last = this.#held.get(client.key)?.stored
    const before = last?.isWrong ? last.before : last && { ...last, before: undefined }
    const stored = found && { ...found, before, isWrong: false }
    this.#held.delete(client.key)
    this.#held.set(client.key, { client, stored, generation: this.#generation, isStale: isOutdated })
    if (this.#held.size > this.#maxOverrides) this.#held.delete(this.#held.keys().next().value as string)
    return stored
  }

  async #inTime(
    lookup: Lookup,
    client: Client,
    leftMs: number,
    known: StoredOverride | undefined,
  ): Promise<StoredOverride | undefined> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<'late'>((resolve) => {
      // Where this process was busy for so long, a reply that has arrived meanwhile is read first.
      timer = setTimeout(() => setImmediate(() => resolve('late')), leftMs)
    })
    const found = await Promise.race([lookup.found, late])
    clearTimeout(timer)
    if (found === 'late') this.#warnLate(lookup)
    return typeof found === 'object' && isSame(lookup.client, client) ? found.stored : known
  }

  /** One batch that is late makes those behind it late: no request waits for these. */
  #isSlow(): boolean {
    const [oldestMs] = this.#batches
    return oldestMs !== undefined && performance.now() - oldestMs > this.#timeoutMs
  }

  #warnLate(lookup: Lookup | undefined): void {
    if (lookup) lookup.isLate = true
    this.#late++
    const nowMs = performance.now()
    if (nowMs - this.#warnedAtMs < WARN_EVERY_MS) return
    const what = this.#late === 1 ? 'an override of a client was' : `overrides of clients were ${this.#late} times`
    const message = `sluice_overrides: ${what} not found within ${this.#timeoutMs} ms: what was known last decided, or the document`
    process.emitWarning(message, { type: 'SluiceWarning', code: 'SLUICE_OVERRIDE_FAILED' })
    this.#warnedAtMs = nowMs
    this.#late = 0
  }
}

/** Two clients of one hash are not the same. */
function isSame(one: Client, other: Client): boolean {
  return one.identity === other.identity && one.kind === other.kind && one.policy === other.policy
}
