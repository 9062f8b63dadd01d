import { setImmediate } from 'node:timers/promises'
import type { BlockEntry } from '../store/blocks.js'
import { startOf } from '../store/identity.js'
import {
  type Banning,
  type BanTerms,
  type BlockReport,
  EVERY_POLICY,
  type Strike,
  type StrikeResult,
} from '../store/store.js'
import { SluiceError } from '../util/errors.js'
import { type Block, type BlockOf, Blocks, keyOf } from './blocks.js'
import { type States, SWEPT_PER_INSERT } from './states.js'
import { StrikeRecords } from './strikes.js'
import type { Swept } from './sweeper.js'
import { Usage } from './usage.js'

/** The part of `maxBytes` that blocks may take: a list of blocks that grows must not end all limiting. */
const BLOCKS_SHARE = 1 / 2
/** The part that bans may take at least: what blocks leave of their half, or this. */
const LEAST_BANS_SHARE = 1 / 16
/** The part that strikes and rungs may take: a flood of addresses that are refused must not end all limiting either. */
const STRIKES_SHARE = 1 / 4
/** Blocks looked at before one more is refused. */
const SWEPT_WHEN_FULL = 64
/** Keys looked at without a pause, where all are. */
const LOOKED_AT_ONCE = 2000

/** What a store does when its blocks change. */
export interface BanListeners {
  changed(): void
  /** A ban goes before its time, as there is no room for it. */
  evicted(ban: BlockOf): void
}

/** The blocks and bans of a memory store, with the strikes that lead to bans. */
export class Bans implements Swept {
  readonly blocks: Blocks
  readonly #strikes: StrikeRecords
  readonly #states: States
  readonly #listeners: BanListeners
  /** Whether bans of every policy are looked for: only once there was one. */
  #hasEveryPolicy = false

  constructor(states: States, listeners: BanListeners) {
    const { graceMs, maxBytes } = states.bounds
    const room = { blocks: maxBytes * BLOCKS_SHARE, leastBans: maxBytes * LEAST_BANS_SHARE }
    this.blocks = new Blocks(new Usage(states.usage), graceMs, room, (ban) => listeners.evicted(ban))
    this.#strikes = new StrikeRecords(new Usage(states.usage), graceMs, maxBytes * STRIKES_SHARE)
    this.#states = states
    this.#listeners = listeners
  }

  get size(): number {
    return this.blocks.size + this.#strikes.size
  }

  sweep(now: number, most: number): number {
    return this.blocks.sweep(now, most / 2) + this.#strikes.sweep(now, most / 4)
  }

  /** Of the blocks and bans that hold, the one that ends last. */
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

  /** Counts a strike toward a ban, unless a block or ban holds. */
  strike(terms: BanTerms, identity: string, strike: Strike, now: number): StrikeResult {
    const { policy, scope } = terms
    const held = this.holding({ policy, banningPolicy: scope }, [identity], now)
    if (strike.weight === 0) this.forgive(scope, identity)
    if (!held && strike.weight > 0) return { now, block: this.struck(terms, identity, strike, now) }
    return { now, block: held && reportOf(held, now) }
  }

  /** Counts a strike. Returns the ban that it starts, if it does. */
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
    this.#strikes.pardon(keyOf(scope, identity))
  }

  /** @throws SluiceError `STORE_FULL` */
  block(policy: string, identity: string, forMs: number, reason: string, now: number): void {
    this.#add(policy, identity, this.#blockOf(policy, identity, now, { forMs, reason }), now)
  }

  /**
   * Takes over a block or ban that was made elsewhere: the next ban is of the next rung.
   *
   * @throws SluiceError `STORE_FULL`
   */
  keep({ policy, identity, block }: BlockOf, now: number): void {
    this.#add(policy, identity, block, now)
    this.#keepRung(policy, identity, block, now)
  }

  /** Takes over those of a file. Returns for how many there was no room. */
  restore(entries: readonly BlockEntry[], now: number): number {
    const left = entries.filter(({ policy = EVERY_POLICY, kind, value, ...block }) => {
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
    // From the last to the first, as the last takes the place of one that is removed.
    for (const keys of [() => this.blocks.keys(), () => this.#strikes.keys()]) {
      let looked = 0
      for (const key of keys()) {
        if (key.endsWith(end)) this.unblock(key.slice(0, -end.length), identity)
        // Lets requests run in between.
        if (++looked % LOOKED_AT_ONCE === 0) await setImmediate()
      }
    }
  }

  /** A block from now on. */
  #blockOf(
    policy: string,
    identity: string,
    now: number,
    { forMs, ...more }: { forMs: number; reason: string; ban?: NonNullable<Block['ban']> },
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

  /** Whether there is room for it: for a ban there always is. */
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
  return ban ? { reason, remainingMs, ban: { rung: ban.rung, strikes: ban.strikes } } : { reason, remainingMs }
}
