import { setImmediate } from 'node:timers/promises'
import { type States, SWEPT_PER_INSERT } from '../../memory/states.js'
import type { Swept } from '../../memory/sweeper.js'
import { Usage } from '../../memory/usage.js'
import type { BlockEntry } from '../../store/entries.js'
import { startOf } from '../../store/identity.js'
import {
  type Banning,
  type BanTerms,
  type BlockReport,
  blockReport,
  EVERY_POLICY,
  type Strike,
  type StrikeResult,
} from '../../store/store.js'
import { SluiceError } from '../../util/errors.js'
import { type Block, type BlockOf, BlockTable, keyOf } from './block-table.js'
import { StrikeRecords } from './memory-strikes.js'

/** The part of `maxBytes` that blocks may take: a growing list of blocks must not end all limiting. */
const BLOCKS_SHARE = 1 / 2
/** The minimum for bans, if blocks leave less of their half. */
const LEAST_BANS_SHARE = 1 / 16
/** The part that strikes and rungs may take: a flood of refused addresses must not end all limiting either. */
const STRIKES_SHARE = 1 / 4
/** The number of blocks checked for expiry before another one is refused. */
const SWEPT_WHEN_FULL = 64
/** The number of keys visited without a pause. */
const LOOKED_AT_ONCE = 2000

/** Notified when the blocks of a store change. */
export interface BanListeners {
  changed(): void
  /** A ban has ended before its time, for lack of room. */
  evicted(ban: BlockOf): void
}

/** The blocks and bans of a memory store, with the strikes that lead to bans. */
export class MemoryBans implements Swept {
  readonly blocks: BlockTable
  readonly #strikes: StrikeRecords
  readonly #states: States
  readonly #listeners: BanListeners
  /** Whether to look for bans of every policy: only once there was one. */
  #hasEveryPolicy = false

  constructor(states: States, listeners: BanListeners) {
    const { graceMs, maxBytes } = states.bounds
    const room = { blocks: maxBytes * BLOCKS_SHARE, leastBans: maxBytes * LEAST_BANS_SHARE }
    this.blocks = new BlockTable(new Usage(states.usage), graceMs, room, (ban) => listeners.evicted(ban))
    this.#strikes = new StrikeRecords(new Usage(states.usage), graceMs, maxBytes * STRIKES_SHARE)
    this.#states = states
    this.#listeners = listeners
  }

  get size(): number {
    return this.blocks.size + this.#strikes.size
  }

  sweep(now: number, max: number): number {
    return this.blocks.sweep(now, max / 2) + this.#strikes.sweep(now, max / 4)
  }

  /** The block or ban in force that ends last. */
  holding({ policy, banningPolicy }: Banning, identities: readonly string[], now: number): Block | undefined {
    const { blocks } = this
    let last: Block | undefined
    const look = (block: Block | undefined) => {
      if (block && block.until > (last?.until ?? now)) last = block
    }
    for (const identity of identities) {
      look(blocks.find(policy, identity))
      if (banningPolicy !== undefined) look(blocks.find(banningPolicy, identity))
      if (this.#hasEveryPolicy) look(blocks.find(EVERY_POLICY, identity))
      if (!blocks.hasRanges) continue
      blocks.ofRanges([policy, banningPolicy ?? policy, EVERY_POLICY], identity).forEach(look)
    }
    return last
  }

  /** Counts a strike toward a ban, unless a block or ban is in force. */
  strike(terms: BanTerms, identity: string, strike: Strike, now: number): StrikeResult {
    const { policy, scope } = terms
    const inForce = this.holding({ policy, banningPolicy: scope }, [identity], now)
    if (strike.weight === 0) this.forgive(scope, identity)
    if (!inForce && strike.weight > 0) return { now, block: this.struck(terms, identity, strike, now) }
    return { now, block: inForce && reportOf(inForce, now) }
  }

  /** Counts a strike. Returns the ban that it starts, if any. */
  struck(
    terms: BanTerms,
    identity: string,
    { weight, jitterMs, reason }: Strike,
    now: number,
  ): BlockReport | undefined {
    const { scope, forgetAfterMs } = terms
    this.#strikes.sweep(now, SWEPT_PER_INSERT)
    const start = this.#strikes.strike(keyOf(scope, identity), now, weight, jitterMs, terms)
    this.#states.sweepLater()
    if (this.#states.areTooMany) this.#states.makeRoom(now, [])
    if (!start) return undefined
    const { rung, strikes, forMs } = start
    const ban = this.#blockOf(scope, identity, now, { forMs, reason, ban: { rung, strikes, forgetAfterMs } })
    this.#set(scope, identity, ban, now)
    return { ...reportOf(ban, now), hasBegun: true }
  }

  /** Forgets strikes; the rung stays. */
  forgive(scope: string, identity: string): void {
    this.#strikes.forgive(keyOf(scope, identity))
  }

  /** @throws SluiceError `STORE_FULL` */
  block(policy: string, identity: string, forMs: number, reason: string, now: number): void {
    this.#add(policy, identity, this.#blockOf(policy, identity, now, { forMs, reason, ban: undefined }), now)
  }

  /**
   * Adds a block or ban that was made elsewhere: the next ban is of the next rung.
   *
   * @throws SluiceError `STORE_FULL`
   */
  keep({ policy, identity, block }: BlockOf, now: number): void {
    this.#add(policy, identity, block, now)
    this.#keepRung(policy, identity, block, now)
  }

  /** Adds the entries of a file. Returns the number of those without room. */
  restore(entries: readonly BlockEntry[], now: number): number {
    const left = entries.filter(({ policy = EVERY_POLICY, kind, value, ...entry }) => {
      const block = { ban: undefined, ...entry }
      this.#keepRung(policy, startOf(kind) + value, block, now)
      return !this.#set(policy, startOf(kind) + value, block, now)
    })
    return left.length
  }

  unblock(policy: string, identity: string): void {
    this.#listeners.changed()
    this.blocks.delete(policy, identity)
    this.#strikes.forget(keyOf(policy, identity))
  }

  /** Ends all blocks and bans. */
  clear(): void {
    for (let index = this.blocks.size - 1; index >= 0; index--) {
      const { policy, identity } = this.blocks.at(index)
      this.unblock(policy, identity)
    }
  }

  /** Forgets an identity under every policy. */
  async forget(identity: string): Promise<void> {
    const end = `\n${identity}`
    // From the last to the first, as the last replaces a removed one.
    for (const keys of [() => this.blocks.keys(), () => this.#strikes.keys()]) {
      let looked = 0
      for (const key of keys()) {
        if (key.endsWith(end)) this.unblock(key.slice(0, -end.length), identity)
        // Lets requests run in between.
        if (++looked % LOOKED_AT_ONCE === 0) await setImmediate()
      }
    }
  }

  /** A block that begins at `now`. */
  #blockOf(
    policy: string,
    identity: string,
    now: number,
    { forMs, ...more }: { forMs: number; reason: string; ban: Block['ban'] },
  ): Block {
    const times = (this.blocks.find(policy, identity)?.times ?? 0) + 1
    return { since: now, until: now + forMs, times, ...more }
  }

  #add(policy: string, identity: string, block: Block, now: number): void {
    if (this.#set(policy, identity, block, now)) return
    const { maxBytes } = this.#states.bounds
    throw new SluiceError(
      'STORE_FULL',
      `memoryStore: maxBytes: no room for one more block: ${this.blocks.sizeByHand} take half of ${maxBytes} bytes`,
    )
  }

  /** Sets a block and returns whether there was room: for a ban there always is. */
  #set(policy: string, identity: string, block: Block, now: number): boolean {
    if (policy === EVERY_POLICY) this.#hasEveryPolicy = true
    this.blocks.sweep(now, SWEPT_PER_INSERT)
    if (!this.blocks.set(policy, identity, block)) {
      this.blocks.sweep(now, SWEPT_WHEN_FULL)
      if (!this.blocks.set(policy, identity, block)) return false
    }
    if (this.#states.areTooMany) this.#states.makeRoom(now, [])
    this.#states.sweepLater()
    this.#listeners.changed()
    return true
  }

  #keepRung(policy: string, identity: string, { until, ban }: Block, now: number): void {
    if (ban?.forgetAfterMs === undefined) return
    const { rung, forgetAfterMs } = ban
    this.#strikes.keepRung(keyOf(policy, identity), { rung, until, forgetAfterMs }, now)
    this.#states.sweepLater()
  }
}

export function reportOf({ until, reason, ban }: Block, now: number): BlockReport {
  const remainingMs = until - now
  return blockReport(reason, remainingMs, ban)
}
