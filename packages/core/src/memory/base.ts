import { givenClock } from '../util/given-clock.js'
import { wholeNumber } from '../util/validate.js'
import { monotonicClock, WallClock } from './clock.js'
import { States } from './states.js'
import { Sweeper, type Swept } from './sweeper.js'
import type { Bounds, TableClassOf } from './tables.js'

/** The options of the counts. */
export interface RoomOptions {
  readonly clock?: (() => number) | undefined
  readonly maxKeys?: number | undefined
  readonly maxBytes?: number | undefined
}

/** Maximum of keys. Below 2^26 - 1, which a table can number, with room for those that one decision adds before evictions. */
const MAX_KEYS = 60_000_000
const LEAST_BYTES = 1_000_000
/** A clock of the user may step back. As in Redis, states then outlive their end for this long. */
const STRANGE_CLOCK_GRACE_MS = 3_600_000

/** What the parts of a memory store share: its clocks, its room, and the timer for all that ends by itself. */
export class MemoryBase {
  /** The clock of the user. */
  readonly givenClock: (() => number) | undefined
  readonly now: () => number
  readonly bounds: Bounds
  /** The collections whose entries end, in the order in which they are visited. Those of `states` are the last. */
  readonly swept: (() => Swept)[] = []
  /** Called with each instant at which the timer visits them. */
  onSweep: ((now: number) => void) | undefined
  states: States
  readonly #classOf: TableClassOf
  readonly #sweeper: Sweeper

  /** @throws SluiceError `INVALID_POLICY` */
  constructor({ clock, maxKeys = 100_000, maxBytes = 268_435_456 }: RoomOptions, classOf: TableClassOf) {
    wholeNumber('memoryStore', 'maxKeys', maxKeys, 1, MAX_KEYS)
    wholeNumber('memoryStore', 'maxBytes', maxBytes, LEAST_BYTES)
    this.givenClock = givenClock('memoryStore', clock)
    this.now = this.givenClock ?? monotonicClock()
    const wall = new WallClock(this.now, this.givenClock !== undefined)
    this.bounds = { maxKeys, maxBytes, graceMs: this.givenClock ? STRANGE_CLOCK_GRACE_MS : 0, wall }
    this.#classOf = classOf
    this.#sweeper = new Sweeper(() => this.#sweptAt(), this.swept)
    this.states = this.#newStates()
  }

  /** The date now. */
  get date(): number {
    return this.bounds.wall.at(this.now())
  }

  /** Empties the room. Parts that use it are to be cleared after it. */
  clear(): void {
    this.#sweeper.stop()
    this.states = this.#newStates()
  }

  #newStates(): States {
    return new States(this.bounds, this.#classOf, () => this.#sweeper.later())
  }

  #sweptAt(): number {
    const now = this.now()
    this.onSweep?.(now)
    return now
  }
}
