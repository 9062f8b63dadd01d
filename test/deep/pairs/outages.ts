import { isDeepStrictEqual } from 'node:util'
import { BanOracle } from '../../support/oracle/bans.js'
import type { Case, LimitOf } from './case.js'
import { Count, type Known } from './count.js'
import type { Expected } from './expected.js'

/** No limit decides: docs/when-redis-fails.md, Stopping. */
export const REFUSED_IN_OUTAGE: Expected = {
  allowed: false,
  reason: 'unavailable',
  kind: 'unavailable',
  retryAfterMs: [2000, 2000],
  limits: [],
}

/** What processes decide by while the store is away: docs/when-redis-fails.md. */
export class Outages {
  readonly #case: Case
  readonly #away = new Set<number>()
  /** What each process counts by itself, and what it knows of the store by its last replies. */
  readonly #local = new Map<string, Count>()
  readonly #known = new Map<string, readonly Known[]>()
  readonly #bans = new Map<string, BanOracle>()

  constructor(of: Case) {
    this.#case = of
  }

  begin(process: number): void {
    this.#away.add(process)
  }

  end(process: number): void {
    this.#away.delete(process)
  }

  isAway(process: number): boolean {
    return this.#away.has(process)
  }

  /** The share of each limit that a process enforces. */
  get share(): number {
    const { unavailable } = this.#case
    return unavailable && 'share' in unavailable ? unavailable.share : 1
  }

  /** The units that a process keeps for higher priorities. */
  reserved(units: number, { capacity }: Count): number {
    return this.share === 1 ? units : Math.max(0, Math.min(Math.floor(units * this.share + 1e-9), capacity - 1))
  }

  get isLocal(): boolean {
    const { unavailable } = this.#case
    return !(unavailable && 'decide' in unavailable)
  }

  /** The decision on each request, where no process counts. */
  get withoutCounts(): Expected | undefined {
    const { unavailable } = this.#case
    if (!unavailable || 'share' in unavailable) return undefined
    if (unavailable.decide === 'deny') return REFUSED_IN_OUTAGE
    return { allowed: true, kind: 'unavailable', limits: [] }
  }

  /** A process has had a reply about a count. `isSure`: for certain. */
  note(process: number, count: Count, isSure: boolean, now: number): void {
    const id = this.#id(process, count)
    const before = isSure ? [] : (this.#known.get(id) ?? [NOTHING])
    const known = count.known(now)
    if (!before.some((each) => isDeepStrictEqual(each, known))) this.#known.set(id, [...before, known])
  }

  /** The counts by which a process decides, in the order of these limits of one policy. */
  counts(process: number, counts: readonly Count[]): Count[] {
    const known = counts.map((count) => this.#known.get(this.#id(process, count)) ?? [])
    const local = counts.map((count) => {
      const id = this.#id(process, count)
      const made = this.#local.get(id) ?? new Count(count.id, count.limit, count.identity, 0, this.share)
      this.#local.set(id, made)
      this.#known.delete(id)
      return made
    })
    const most = local.map((count, i) => count.mostKnown(known[i] as readonly Known[]))
    for (const [i, count] of local.entries()) {
      // Of logs of an identity, it goes on with the most used one, which charges all: Local decisions.
      const alike = local.flatMap((other, o) => (sharesLog(count, other) ? [most[o] as number] : []))
      count.goOn(known[i] as readonly Known[], Math.max(...alike), alike.length === 1)
    }
    return local
  }

  /** The ban of a client that only a process knows. */
  ban(process: number, p: number, client: string): BanOracle | undefined {
    const { ban } = this.#case.policies[p] ?? {}
    if (!ban || !this.isLocal) return undefined
    const id = `${process} ${p} ${client}`
    const { after, within: withinMs, for: ladderMs } = ban
    const made = this.#bans.get(id) ?? new BanOracle({ after, withinMs, ladderMs, forgetAfterMs: 30 * 86_400_000 })
    this.#bans.set(id, made)
    return made
  }

  /** A process forgets what it has counted. */
  reset(process: number, counts: readonly Count[]): void {
    for (const id of counts.map((count) => this.#id(process, count))) {
      this.#known.delete(id)
      this.#local.get(id)?.reset(process)
    }
  }

  #id(process: number, count: Count): string {
    return `${process} ${count.id}`
  }
}

/** A process may have had no reply about a count. */
const NOTHING: Known = {
  at: 0,
  room: [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  resetMs: [0, 0],
  most: [],
  least: [],
}

function sharesLog(one: Count, other: Count): boolean {
  if (one === other) return true
  const isLog = ({ algorithm }: LimitOf) => algorithm === 'slidingLog'
  return (
    isLog(one.limit) && isLog(other.limit) && one.identity === other.identity && one.limit.unit === other.limit.unit
  )
}
