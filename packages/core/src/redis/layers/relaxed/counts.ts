import type { Cell, Plan } from '../../../store/store.js'
import type { ChargesByWindow } from './charges-by-window.js'
import type { LocalCount } from './local-count.js'
import { LocalCounter } from './local-counter.js'
import { LocalSegments } from './local-segments.js'

/** What Redis's clock said in a reply, and when that was here: by the performance clock. */
export interface Heard {
  readonly now: number
  readonly at: number
  /** By how much more, in ms, Redis's clock may be ahead of what was read. */
  readonly spreadMs: number
}

/** The cell of all plans that count in one state, and what this process counts in it by identity. */
export class CountTable {
  readonly cell: Cell
  /** By which plans that count in the same state find it. */
  readonly name: string
  /** Whether it was dropped when it was empty. */
  isGone = false
  readonly policy: string
  /** Another policy whose blocks and bans refuse its identities. */
  readonly banningPolicy: string | undefined
  readonly numbers: number
  readonly counts = new Map<string, Count>()
  /** Identities that were asked of Redis once since the last round, with the order in which that was sent: see `Outbox.order`. */
  readonly askedOnce = new Map<string, number>()

  constructor({ policy, banningPolicy }: Plan, cell: Cell, name: string) {
    this.cell = cell
    this.name = name
    this.policy = policy
    this.banningPolicy = banningPolicy
    this.numbers = numbersOf(cell)
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
  /** Whether decisions are made here: once Redis has said what it counts. */
  isOpen = false
  heard: Heard | undefined
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

  constructor(table: CountTable, identity: string, slot: number, syncEveryMs: number) {
    this.table = table
    this.identity = identity
    this.slot = slot
    this.syncEveryMs = syncEveryMs
    this.local = localCountOf(table.cell)
  }

  /** Whether a decision waits for Redis. */
  get isAsked(): boolean {
    return this.asked.some(({ isOpen }) => isOpen)
  }

  /** Whether nothing would be lost or noticed without it. */
  get isIdle(): boolean {
    return !this.isUsed && !this.isAsked && this.underWay.length === 0 && !this.local.hasUnsent
  }
}

/** An empty count of a cell. Policies refuse the kinds that are not exchanged. */
function localCountOf({ kernel, params }: Cell): LocalCount {
  switch (kernel) {
    case 'counter':
      return new LocalCounter(params)
    case 'segments':
      return new LocalSegments(params)
    default:
      throw new TypeError(`a ${kernel} is not counted by a process alone`)
  }
}

/** How many numbers a count takes in memory, about. */
function numbersOf({ kernel, params }: Cell): number {
  const segments = kernel === 'segments' ? (params[2] as number) : 0
  return NUMBERS_OF_ANY + segments
}

/** With its identity, its entry in two tables and what is to be sent of it. */
const NUMBERS_OF_ANY = 64
