import type { Cell, Plan } from '../../../store/store.js'
import type { ChargesByWindow } from './charges-by-window.js'
import type { LocalCount } from './local-count.js'
import { LocalCounter } from './local-counter.js'
import { LocalSegments } from './local-segments.js'

/** What Redis's clock said in a reply, and when that was here: by the performance clock. */
export interface ObservedTime {
  readonly now: number
  readonly at: number
  /** By how much more, in ms, Redis's clock may be ahead of what was read. */
  readonly spreadMs: number
}

/** With its identity, its entry in two tables and what is to be sent of it, a count takes about so many numbers in memory. */
const NUMBERS_OF_ANY = 64

/** The cell of all plans that count in one state, and what this process counts in it by identity. */
export class CountTable {
  readonly cell: Cell
  readonly policy: string
  /** Another policy whose blocks and bans refuse its identities. */
  readonly banningPolicy: string | undefined
  /** How many numbers each count takes in memory, about. */
  readonly numbers: number
  readonly counts = new Map<string, Count>()
  /** Identities that were asked of Redis once since the last round, with the order in which that was sent: see `Outbox.order`. */
  readonly askedOnce = new Map<string, number>()

  constructor({ policy, banningPolicy }: Plan, cell: Cell) {
    this.cell = cell
    this.policy = policy
    this.banningPolicy = banningPolicy
    this.numbers = NUMBERS_OF_ANY + (cell.kernel === 'segments' ? (cell.params[2] as number) : 0)
  }
}

/** Units that Redis was asked for, by a decision. */
export interface Asked {
  readonly units: number
  /** When it was sent, in the order of all that is: see `Outbox.order`. */
  readonly order: number
  /** Whether it waits for its reply. */
  isOpen: boolean
}

/** What this process counts of one identity in one cell. */
export class Count {
  readonly table: CountTable
  readonly identity: string
  readonly slot: number
  readonly syncEveryMs: number
  readonly local: LocalCount
  readonly #clock: (() => number) | undefined
  /** Whether decisions are made here: once Redis has said what it counts. */
  isOpen = false
  observed: ObservedTime | undefined
  /** Whether anything was decided here since it was sent last. */
  isUsed = false
  /** Whether it was dropped: nothing of it is to be sent any more. */
  isGone = false
  /** Whether it is to be sent alone and without its block keys: its slot is on the move, or was elsewhere. */
  isAlone = false
  /** What may not be in what Redis says next: it was asked for after that was sent. */
  asked: Asked[] = []
  /** What exchanges carry that were not replied to, in order. */
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

  /** The time of Redis, once a reply has named it. Milliseconds are rounded down: what has not surely come, has not. */
  nowAt(performanceNow: number): number {
    const { now, at } = this.observed as ObservedTime
    return this.#clock ? this.#clock() : now + Math.floor(performanceNow - at)
  }

  now(): number {
    return this.nowAt(performance.now())
  }

  /** Charges what is to be sent to Redis, by its clock. */
  charge(cost: number, now: number): void {
    this.local.charge(cost, now, now + (this.observed as ObservedTime).spreadMs)
  }

  /** Whether anything waits for a reply. */
  get isAsked(): boolean {
    return this.underWay.length > 0 || this.asked.some(({ isOpen }) => isOpen)
  }

  /** Whether nothing would be lost or noticed without it. */
  get isIdle(): boolean {
    return !this.isUsed && !this.isAsked && !this.local.hasUnsent
  }
}

/** An empty count of a cell. Policies refuse the kinds that are not exchanged. */
function localCountOf({ kernel, params }: Cell): LocalCount {
  if (kernel === 'counter') return new LocalCounter(params)
  if (kernel === 'segments') return new LocalSegments(params)
  throw new TypeError(`a ${kernel} is not counted by a process alone`)
}
