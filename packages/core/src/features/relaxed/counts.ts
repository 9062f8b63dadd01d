import type { Cell, Plan } from '../../store/store.js'
import type { CellState } from '../../util/states-by-identity.js'
import type { ChargesByWindow } from './charges-by-window.js'
import type { LocalCount } from './local-count.js'
import { LocalCounter } from './local-counter.js'
import { LocalSegments } from './local-segments.js'

/** Redis's time in a reply (`now`), and when the reply arrived (`at`), by the performance clock. */
export interface ObservedTime {
  readonly now: number
  readonly at: number
  /** The ms by which Redis's clock may additionally be ahead of `now`. */
  readonly spreadMs: number
}

/** Approximate memory of a count, in numbers: its identity, its entries in two tables and its unsent charges. */
const NUMBERS_OF_ANY = 64

/** The counts of this process by identity in one cell, for all plans that share the cell's state. */
export class CountTable {
  readonly cell: Cell
  readonly policy: string
  /** Another policy whose blocks and bans apply to its identities. */
  readonly banningPolicy: string | undefined
  /** Approximate memory of each count, in numbers. */
  readonly numbers: number
  readonly counts = new Map<string, Count>()
  /** Identities that Redis decided once since the last round, with the position of that request: see `Outbox.order`. */
  readonly requestedOnce = new Map<string, number>()

  constructor({ policy, banningPolicy }: Plan, cell: Cell) {
    this.cell = cell
    this.policy = policy
    this.banningPolicy = banningPolicy
    this.numbers = NUMBERS_OF_ANY + (cell.kernel === 'segments' ? (cell.params[2] as number) : 0)
  }
}

/** Units that a decision requested from Redis. */
export interface PendingUnits {
  readonly units: number
  /** The position of the request in the order of all that is sent: see `Outbox.order`. */
  readonly order: number
  /** Whether the request waits for its reply. */
  isOpen: boolean
}

/** This process's count of one identity in one cell. */
export class Count implements CellState {
  readonly table: CountTable
  readonly identity: string
  readonly slot: number
  readonly syncEveryMs: number
  readonly local: LocalCount
  readonly #clock: (() => number) | undefined
  /** Whether decisions are made here, which is so once Redis has reported its count. */
  isOpen = false
  observed: ObservedTime | undefined
  /** Whether a decision was made here since the count was last sent. */
  isUsed = false
  /** Whether the count was dropped. Dropped counts are not sent. */
  isGone = false
  /** Whether the count must be sent alone and without block keys: its slot is migrating, or was on another node. */
  isAlone = false
  /** Requested units that Redis's next report may lack, as they were requested after the exchange was sent. */
  pending: PendingUnits[] = []
  /** Charges in exchanges without a reply yet, in order. */
  underWay: ChargesByWindow[] = []

  constructor(
    table: CountTable,
    identity: string,
    slot: number,
    syncEveryMs: number,
    clock: (() => number) | undefined,
  ) {
    this.table = table
    this.identity = identity
    this.slot = slot
    this.syncEveryMs = syncEveryMs
    this.#clock = clock
    this.local = localCountOf(table.cell)
  }

  get policy(): string {
    return this.table.policy
  }

  get cellId(): string {
    return this.table.cell.id
  }

  /**
   * Redis's time, after the first reply. Rounded down to ms, so that an instant counts as reached only if it certainly
   * is.
   */
  nowAt(performanceNow: number): number {
    const { now, at } = this.observed as ObservedTime
    return this.#clock ? this.#clock() : now + Math.floor(performanceNow - at)
  }

  now(): number {
    return this.nowAt(performance.now())
  }

  /** Charges units that will be sent to Redis, by its clock. */
  charge(cost: number, now: number): void {
    this.local.charge(cost, now, now + (this.observed as ObservedTime).spreadMs)
  }

  /** Whether a request or exchange waits for a reply. */
  get hasPending(): boolean {
    return this.underWay.length > 0 || this.pending.some(({ isOpen }) => isOpen)
  }

  /** Whether any charge still counts, as far as it is known. */
  get isInEffect(): boolean {
    return this.observed !== undefined && this.local.resetAfter(this.now()) > 0
  }

  /** Whether the count can be dropped: Redis has all of it, and no decision was made here since it was sent. */
  get isIdle(): boolean {
    return !this.isUsed && !this.hasPending && !this.local.hasUnsent
  }
}

/** Makes an empty count of a cell. Policies reject kinds that cannot be exchanged. */
function localCountOf({ kernel, params }: Cell): LocalCount {
  if (kernel === 'counter') return new LocalCounter(params)
  if (kernel === 'segments') return new LocalSegments(params)
  throw new TypeError(`a ${kernel} is not counted by a process alone`)
}
