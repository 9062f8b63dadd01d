import calculateSlot from 'cluster-key-slot'
import { durationMs } from '../duration.js'
import { invalidPolicy } from '../errors.js'
import { knownOptions, optionalFunction, wholeNumber } from '../limits/checks.js'
import type { Answer, Ask, Cell, Plan, Store } from '../store.js'
import { decideAcrossSlots } from './across-slots.js'
import { Batches } from './batches.js'
import { type Connection, connect } from './connection.js'
import { blockSuffix, cellSuffix, keyStart } from './keys.js'
import { Leases } from './leases.js'
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
export function redisStore(client: unknown, options: RedisStoreOptions = {}): Store {
  knownOptions('redisStore', options, ['clock', 'timeoutMs', 'batch', 'prefix'])
  optionalFunction('redisStore', 'clock', options.clock)
  const timeoutMs = durationMs('redisStore', 'timeoutMs', options.timeoutMs ?? 100)
  const batch = wholeNumber('redisStore', 'batch', options.batch ?? 64, 1)
  if (batch > MOST_IN_BATCH) invalidPolicy('redisStore', 'batch', `at most ${MOST_IN_BATCH}`, batch)
  return new RedisStore(connect(client, timeoutMs), { ...options, timeoutMs, batch })
}

/** Lua can hand no more than some thousand keys to one command. */
const MOST_IN_BATCH = 1000

class RedisStore implements Store {
  readonly #connection: Connection
  readonly #batches: Batches
  readonly #leases: Leases
  readonly #prefix: string
  readonly #timeoutMs: number
  readonly #clock: (() => number) | undefined
  readonly #marker: string | undefined

  constructor(connection: Connection, options: RedisStoreOptions & { timeoutMs: number; batch: number }) {
    this.#connection = connection
    this.#prefix = connection.keyPrefix + (options.prefix ?? 'sluice:')
    this.#timeoutMs = options.timeoutMs
    this.#clock = options.clock
    this.#marker = connection.isCluster ? undefined : `${this.#prefix}blocked`
    this.#batches = new Batches(connection, {
      prefix: this.#prefix,
      timeoutMs: options.timeoutMs,
      batch: options.batch,
      clock: options.clock,
      marker: this.#marker,
    })
    this.#leases = new Leases({
      decide: (ask) => this.#decideShared(ask),
      isOneRun: (identities) => !connection.isCluster || isOne(this.#slots(identities)),
      clock: options.clock,
    })
  }

  decide(ask: Ask): Answer | Promise<Answer> {
    return ask.plan.cells[0]?.lease ? this.#leases.decide(ask) : this.#decideShared(ask)
  }

  #decideShared(ask: Ask): Promise<Answer> {
    if (!this.#connection.isCluster) return this.#batches.decide(ask, 0)
    const slots = this.#slots(ask.identities)
    if (isOne(slots)) return this.#batches.decide(ask, slots[0] as number)
    return decideAcrossSlots(ask, slots, (part, slot) => this.#batches.decide(part, slot))
  }

  async reset(plan: Plan, identities: readonly string[]): Promise<void> {
    this.#leases.forget(plan, identities)
    this.#batches.flush()
    const keys = plan.cells.map((cell: Cell) => {
      return this.#start(identities[cell.identity] as string) + cellSuffix(plan.policy, cell)
    })
    await deleteKeys(this.#connection, this.#timeoutMs, keys)
  }

  async block(policy: string, identity: string, forMs: number, reason: string): Promise<void> {
    this.#leases.drop(policy, identity)
    this.#batches.flush()
    const keys = [this.#start(identity) + blockSuffix(policy)]
    if (this.#marker !== undefined) keys.push(this.#marker)
    await run(this.#connection, this.#timeoutMs, blockScript, () => ({
      keys,
      args: [this.#clock ? String(this.#clock()) : '', String(forMs), reason],
    }))
  }

  async unblock(policy: string, identity: string): Promise<void> {
    this.#leases.drop(policy, identity)
    this.#batches.flush()
    await deleteKeys(this.#connection, this.#timeoutMs, [this.#start(identity) + blockSuffix(policy)])
  }

  async close(): Promise<void> {
    await this.#leases.close()
    await this.#batches.drain()
    this.#connection.close()
  }

  #slots(identities: readonly string[]): number[] {
    return identities.map((identity) => calculateSlot(`${this.#start(identity)}}`))
  }

  #start(identity: string): string {
    return keyStart(this.#prefix, identity)
  }
}

function isOne(slots: readonly number[]): boolean {
  return slots.every((slot) => slot === slots[0])
}
