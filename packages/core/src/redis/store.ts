import calculateSlot from 'cluster-key-slot'
import { durationMs } from '../duration.js'
import { invalidPolicy } from '../errors.js'
import { knownOptions, optionalFunction, wholeNumber } from '../limits/checks.js'
import type { Answer, Ask, Cell, Plan, Store } from '../store.js'
import { decideAcrossSlots } from './across-slots.js'
import { Batches, probeKey } from './batches.js'
import { Breaker, type StateListener, type StoreState } from './breaker.js'
import { connect } from './connect.js'
import type { Connection } from './connection.js'
import { HeldPlaces } from './held-places.js'
import { blockSuffix, cellSuffix, keyStart } from './keys.js'
import { deleteKeys, run } from './run.js'
import { blockScript } from './scripts.generated.js'

export interface RedisStoreOptions {
  /**
   * The time in whole ms, the same for every process; for tests, and for those who keep their own.
   * @default Redis's own clock
   */
  readonly clock?: () => number
  /** Longest time a decision may take, in ms or as a duration. @default 100 */
  readonly timeoutMs?: number | string
  /** Most decisions sent in one script run, 1 to 1,000. @default 64 */
  readonly batch?: number
  /** What every key starts with. @default 'sluice:' */
  readonly prefix?: string
  /**
   * Told when decisions are no longer asked of Redis (`'unavailable'`), with the error that decided it, and when
   * they are again (`'available'`): `(state, cause, node)`. In a cluster it is told of each master, by address.
   * What it throws becomes a warning of the process.
   */
  readonly onStateChange?: StateListener
}

/**
 * A store in Redis, shared by every process and machine that uses the same server or cluster.
 *
 * Takes a client of `ioredis` (single, Sentinel or Cluster; 5 or later) or of `redis` (single or cluster;
 * 5 or later) and opens a connection of its own beside it, which ends with `close()` or with the client.
 * All decisions of one turn of the event loop go in one EVALSHA. Needs Redis 6.2 or later.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function redisStore(client: unknown, options: RedisStoreOptions = {}): RedisStore {
  knownOptions('redisStore', options, ['clock', 'timeoutMs', 'batch', 'prefix', 'onStateChange'])
  optionalFunction('redisStore', 'clock', options.clock)
  optionalFunction('redisStore', 'onStateChange', options.onStateChange)
  const timeoutMs = durationMs('redisStore', 'timeoutMs', options.timeoutMs ?? 100)
  const batch = wholeNumber('redisStore', 'batch', options.batch ?? 64, 1)
  if (batch > MOST_IN_BATCH) invalidPolicy('redisStore', 'batch', `at most ${MOST_IN_BATCH}`, batch)
  return new RedisStore(connect(client, timeoutMs), { ...options, timeoutMs, batch })
}

/** Lua can hand no more than some thousand keys to one command. */
const MOST_IN_BATCH = 1000

/** A probe's key ends by itself, however it goes. */
const PROBE_LIFE_MS = 1

export class RedisStore implements Store {
  readonly clock: (() => number) | undefined
  readonly #connection: Connection
  readonly #batches: Batches
  readonly #breaker: Breaker
  readonly #places = new HeldPlaces()
  readonly #prefix: string
  readonly #timeoutMs: number
  readonly #marker: string | undefined
  #closing: Promise<void> | undefined

  /** @internal Use `redisStore`. */
  constructor(connection: Connection, options: RedisStoreOptions & { timeoutMs: number; batch: number }) {
    this.#connection = connection
    this.#prefix = connection.keyPrefix + (options.prefix ?? 'sluice:')
    this.#timeoutMs = options.timeoutMs
    this.clock = options.clock
    this.#marker = connection.isCluster ? undefined : `${this.#prefix}blocked`
    this.#breaker = new Breaker({
      nodeOf: connection.nodeOf,
      probe: (key) => this.#probe(key),
      whenReady: connection.whenReady,
      onStateChange: options.onStateChange,
    })
    connection.onDown((error) => this.#breaker.lost(error, probeKey(this.#prefix)))
    this.#batches = new Batches(connection, {
      prefix: this.#prefix,
      timeoutMs: options.timeoutMs,
      batch: options.batch,
      clock: options.clock,
      marker: this.#marker,
      breaker: this.#breaker,
      places: this.#places,
    })
  }

  /** `'unavailable'` while decisions are not asked of Redis, or in a cluster of one of its masters. */
  get state(): StoreState {
    return this.#breaker.state
  }

  decide(ask: Ask): Promise<Answer> {
    if (!this.#connection.isCluster) return this.#decideOn(0, ask)
    const slots = ask.identities.map((identity) => calculateSlot(`${this.#start(identity)}}`))
    // Before any part is charged, as all would have to be given back.
    for (const slot of slots) this.#refuseIfAway(slot)
    if (slots.every((slot) => slot === slots[0])) return this.#batches.decide(ask, slots[0] as number)
    return decideAcrossSlots(ask, slots, (part, slot) => this.#batches.decide(part, slot))
  }

  #decideOn(slot: number, ask: Ask): Promise<Answer> {
    this.#refuseIfAway(slot)
    return this.#batches.decide(ask, slot)
  }

  /** At once, without a promise: nobody waits for a Redis that is known to be away. */
  #refuseIfAway(slot: number): void {
    const cause = this.#breaker.causeFor(slot)
    if (cause) throw cause
  }

  /** Of all scripts, the one that blocks is the shortest that has to write, which a Redis that is full or read-only cannot. */
  #probe(key: string): Promise<unknown> {
    return run(this.#connection, this.#timeoutMs, blockScript, () => ({
      keys: [key],
      args: ['', String(PROBE_LIFE_MS), ''],
    }))
  }

  async reset(plan: Plan, identities: readonly string[]): Promise<void> {
    this.#batches.flush()
    const keys = plan.cells.map((cell: Cell) => {
      return this.#start(identities[cell.identity] as string) + cellSuffix(plan.policy, cell)
    })
    await deleteKeys(this.#connection, this.#timeoutMs, keys)
  }

  async block(policy: string, identity: string, forMs: number, reason: string): Promise<void> {
    this.#batches.flush()
    const keys = [this.#start(identity) + blockSuffix(policy)]
    if (this.#marker !== undefined) keys.push(this.#marker)
    await run(this.#connection, this.#timeoutMs, blockScript, () => ({
      keys,
      args: [this.clock ? String(this.clock()) : '', String(forMs), reason],
    }))
  }

  async unblock(policy: string, identity: string): Promise<void> {
    this.#batches.flush()
    await deleteKeys(this.#connection, this.#timeoutMs, [this.#start(identity) + blockSuffix(policy)])
  }

  /**
   * Waits for what is in flight, frees the places that this process holds, and ends the store's own connections and
   * timers. Decisions that come later are those of an outage.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#batches.drain()
    await this.#giveBack()
    this.#breaker.end()
    this.#connection.close()
  }

  /** Hands back what this process took for later. What Redis cannot be told lapses by itself. */
  async #giveBack(): Promise<void> {
    const held = this.#places.takeAll().filter(({ slot }) => !this.#breaker.causeFor(slot))
    await Promise.allSettled(held.map(({ ask, slot }) => this.#batches.decide(ask, slot)))
  }

  #start(identity: string): string {
    return keyStart(this.#prefix, identity)
  }
}
