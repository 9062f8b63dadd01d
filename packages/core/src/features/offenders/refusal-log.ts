import { textValue } from '../../store/identity.js'
import type { OffendersQuery, OffendersReport, OffendersWindow } from '../../store/offenders.js'
import { invalidPolicy, SluiceError } from '../../util/errors.js'
import { outsideRequests } from '../../util/outside-requests.js'
import { knownOptions, wholeNumber } from '../../util/validate.js'
import { SpaceSaving } from './space-saving.js'

/** The windows of reports, in ms. Each is counted in slices of a sixth. */
export const WINDOWS: Readonly<Record<OffendersWindow, number>> = { '10m': 600_000, '1h': 3_600_000, '1d': 86_400_000 }
export const SLICES = 6
/**
 * Number of identities in a slice; at times up to twice as many. Its counts are too low by at most its refusals divided
 * by this number.
 */
export const KEPT = 2000

/**
 * Number of identities in a process's sketch. Its counts are too low by at most its refusals divided by this number.
 */
const SKETCHED = 4096
/** Every `EVERY_MS`, a sketch hands on counts above its refusals divided by `WORTH`, at most `AT_ONCE` per call. */
const WORTH = 5000
const AT_ONCE = 200
const EVERY_MS = 1000
/** A sketch restarts after it has handed on counts this many times. */
const TIMES = 60
/** Maximum counted policies. Each takes up to a megabyte. */
const MAX_POLICIES = 100
const MAX_LISTED = 1000

/** New refusals of a policy, to be added to its slices. */
export interface RefusalCounts {
  readonly policy: string
  readonly counts: readonly (readonly [identity: string, count: number])[]
  /** Number of refusals, including identities that `counts` omits. */
  readonly refusals: number
  /** The amount by which counts may additionally be too low. */
  readonly error: number
}

/** The counts of a slice. */
export interface RefusalSlice {
  readonly counts: Iterable<readonly [identity: string, count: number]>
  readonly refusals: number
  readonly error: number
}

/** The refusals of all processes, in slices of time. */
export interface RefusalSlices {
  now(): number
  add(counts: RefusalCounts): Promise<void>
  read(policy: string, window: OffendersWindow, slice: number): Promise<RefusalSlice>
}

interface Counted {
  readonly sketch: SpaceSaving
  /** Refusals since the sketch began, and refusals since the last hand-on. */
  seen: number
  refusals: number
  error: number
  /** The error due to counts that could not be handed on. */
  lost: number
  times: number
}

/** Counts the identities that each policy refuses most often in this process, and hands the counts on every second. */
export class RefusalLog {
  readonly #slices: RefusalSlices
  readonly #byPolicy = new Map<string, Counted>()
  #timer: NodeJS.Timeout | undefined

  constructor(slices: RefusalSlices) {
    this.#slices = slices
  }

  /** Bound, because stores pass it on without `this`. */
  readonly note = (policy: string, identities: readonly string[]): void => {
    let counted = this.#byPolicy.get(policy)
    if (!counted) {
      if (this.#byPolicy.size >= MAX_POLICIES) return
      counted = { sketch: new SpaceSaving(SKETCHED), seen: 0, refusals: 0, error: 0, lost: 0, times: 0 }
      this.#byPolicy.set(policy, counted)
    }
    for (const identity of identities) {
      counted.seen++
      counted.refusals++
      counted.sketch.add(identity)
    }
    this.#timer ??= outsideRequests(() => setTimeout(() => this.#tick(), EVERY_MS).unref())
  }

  /** @throws SluiceError `INVALID_POLICY`, `STORE_UNAVAILABLE` */
  async offenders(query: OffendersQuery): Promise<OffendersReport> {
    const { policy, top, window } = checkedQuery(query)
    await this.#handOn(() => 0)
    const sliceMs = WINDOWS[window] / SLICES
    const last = Math.floor(this.#slices.now() / sliceMs)
    const slices = await Promise.all(
      Array.from({ length: SLICES + 1 }, (_, n) => this.#slices.read(policy, window, last - n)),
    )
    const sums = new Map<string, number>()
    for (const { counts } of slices) {
      for (const [identity, count] of counts) sums.set(identity, (sums.get(identity) ?? 0) + count)
    }
    const first = [...sums].sort(([, one], [, other]) => other - one).slice(0, top)
    return {
      offenders: first.map(([identity, refusals]) => ({ ...textValue(identity), refusals })),
      refusals: slices.reduce((sum, { refusals }) => sum + refusals, 0),
      error: slices.reduce((sum, { error }) => sum + error, 0),
      since: (last - SLICES) * sliceMs,
    }
  }

  forget(identity: string): void {
    for (const { sketch } of this.#byPolicy.values()) sketch.forget(identity)
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#byPolicy.clear()
  }

  async close(): Promise<void> {
    await this.#handOn(() => 0)
    this.clear()
  }

  async #tick(): Promise<void> {
    await this.#handOn(({ seen }) => seen / WORTH)
    this.#timer = this.#byPolicy.size > 0 ? setTimeout(() => this.#tick(), EVERY_MS).unref() : undefined
  }

  /** Hands on counts above `least` since the last time. A sketch at the end of its use hands on all counts. */
  async #handOn(least: (counted: Counted) => number): Promise<void> {
    for (const [policy, counted] of [...this.#byPolicy]) {
      const isOver = ++counted.times >= TIMES
      // Refusals during the waits below belong to the next sketch.
      if (isOver) this.#byPolicy.delete(policy)
      const { sketch, refusals } = counted
      const counts = sketch.take(isOver ? 0 : least(counted))
      let error = sketch.error - counted.error + counted.lost
      if (refusals === 0 && error === 0 && counts.length === 0) continue
      Object.assign(counted, { refusals: 0, error: sketch.error, lost: 0 })
      for (let i = 0; i === 0 || i < counts.length; i += AT_ONCE) {
        const some = counts.slice(i, i + AT_ONCE)
        try {
          await this.#slices.add({ policy, counts: some, refusals: i === 0 ? refusals : 0, error })
          error = 0
        } catch {
          // Redis is unavailable. These counts are lost: sent again, they could count twice.
          counted.lost = error + Math.max(0, ...counts.slice(i).map(([, count]) => count))
          break
        }
      }
    }
  }
}

/**
 * Undefined if the store's option is not set.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function refusalLog(where: string, option: unknown, slices: RefusalSlices): RefusalLog | undefined {
  if (option === undefined || option === false) return undefined
  return option === true ? new RefusalLog(slices) : invalidPolicy(where, 'offenders', 'true or false', option)
}

/** @throws SluiceError `INVALID_POLICY`, `STORE_UNAVAILABLE` */
export async function offendersOf(
  where: string,
  log: RefusalLog | undefined,
  query: OffendersQuery,
): Promise<OffendersReport> {
  if (log) return log.offenders(query)
  throw new SluiceError('INVALID_POLICY', `${where}: offenders: expected true, as offenders() was called`)
}

/** @throws SluiceError `INVALID_POLICY` */
function checkedQuery(query: OffendersQuery): { policy: string; top: number; window: OffendersWindow } {
  const where = 'offenders'
  knownOptions(where, query, ['policy', 'top', 'in'])
  const { policy, top = 20, in: window = '1h' } = query
  if (typeof policy !== 'string' || policy === '') invalidPolicy(where, 'policy', 'the name of a policy', policy)
  wholeNumber(where, 'top', top, 1, MAX_LISTED)
  if (!Object.hasOwn(WINDOWS, window)) invalidPolicy(where, 'in', "'10m', '1h' or '1d'", window)
  return { policy, top, window }
}
