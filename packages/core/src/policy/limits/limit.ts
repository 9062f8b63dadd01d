import type { CellKind } from '../../kinds/kind.js'
import type { HttpContext } from '../../request/context.js'
import type { Algorithm, Calendar, CalendarWindow } from '../../store/algorithms.js'
import type { KeyValue } from '../../store/identity.js'
import type { LeaseTerms, QuotaUnit, ResolvedLimit } from '../../store/store.js'
import type { Duration } from '../../util/duration.js'
import type { Reserve } from './reserve.js'

/** A value, or a function of the request that returns it, or a promise of it. */
export type OrFunction<T, Subject> = T | ((subject: Subject, context: HttpContext<Subject>) => T | Promise<T>)

type KeyResult = KeyValue | null | undefined

/**
 * Yields the identity that a limit is charged on; may be async. Anything but a non-empty string, a finite number or a bigint is
 * an error when the request comes: a missing identity never becomes one bucket for all.
 */
export interface KeyFunction<Subject> extends KeyTraits {
  (subject: Subject, context: HttpContext<Subject>): KeyResult | PromiseLike<KeyResult>
}

/** Traits of the identities that a key function yields. `keyed`, `byIp` and the like set them. */
export interface KeyTraits {
  /** The kind of its values: equal values of two kinds are two identities. @default 'key' */
  readonly kind?: string
  /** @internal What is counted for a value given by hand; undefined or empty for none. @default the value itself */
  readonly normalize?: ((value: string) => string | undefined) | undefined
  /** @internal The keys that it is composed of. */
  // biome-ignore lint/suspicious/noExplicitAny: each is called with what the whole is called with
  readonly parts?: readonly KeyFunction<any>[]
  /** @internal Two functions of one kind that are made of the same functions are one key. */
  readonly madeOf?: readonly unknown[]
  /** @internal The challenge for a request without such a key, in responses of status 401. */
  readonly challenge?: string | undefined
  /** @internal Leading bits of an address of each family that it distinguishes. */
  readonly bits?: { readonly ipv4: number; readonly ipv6: number }
}

/** Options of every constructor. `http` adds `respond` to them: policies know no HTTP. */
export interface CommonOptions<Subject> {
  /** The key that this limit is charged on. @default the policy's `key` */
  readonly key?: KeyFunction<Subject>
  /** The name of this limit in headers: letters, digits, `_` and `-`. @default the policy's name */
  readonly name?: string
  /**
   * The part reserved for requests of higher priority: the others are admitted only where that much stays free.
   *
   * A share (below 1) or units, for priorities of 1 and more; or either by priority.
   * @default 0
   */
  readonly reserve?: Reserve
}

/** For limits that may count another unit than requests. */
export interface UnitOptions {
  /**
   * A unit of your own, such as `'tokens'`, which `cost` names: 1 to 32 letters, digits and `-`.
   *
   * See docs/units.md.
   *
   * `'content-bytes'` charges the bytes of a request's body, as received, instead of its cost. `'response-bytes'`
   * charges those of the response's body, as they are sent; not beside `lease`, `reserve` or `queue`. Neither is for
   * exact logs.
   * @default 'requests'
   */
  readonly unit?: QuotaUnit
  /**
   * `'cap'` charges a cost above the limit's capacity as its capacity, instead of refusing it for ever.
   *
   * For estimates that are settled later.
   * @default none: such a cost is `impossible`
   */
  readonly estimate?: 'cap'
}

/** Units that a process takes from a shared limit at once, to spend them without asking again. */
export interface LeaseOptions {
  /** Most units that one process holds of one key: whole, 1 or more. Demand decides how many it takes. */
  readonly size: number
  /** How long it may spend them: whole ms or a duration, at most the window. */
  readonly ttl: Duration
}

/** For limits whose units can be spent a little later than they were counted. */
export interface LeasableOptions {
  /**
   * Lets each process that shares a Redis store take units in advance and spend them without Redis.
   *
   * Never admits more; may strand up to `size` units per key and process for a while. All limits of a policy have an
   * equal one, or none has. See docs/fewer-round-trips.md.
   * @default none
   */
  readonly lease?: LeaseOptions
}

/** The input of the kernel, once every option is a number. */
export interface Resolution {
  /** @internal The kind of cell that counts it. */
  readonly kind: CellKind
  readonly id: string
  /** The id without amounts: limits that share it can read each other's states. */
  readonly carriedId: string
  readonly params: readonly number[]
  readonly report: Omit<ResolvedLimit, 'name' | 'unit'>
  readonly lease: LeaseTerms | undefined
  /** Present for windows of the calendar, whose `params` lack the bounds. */
  readonly calendar: Calendar | undefined
}

/** The calendar of a limit, as it was given. */
export interface LimitCalendar {
  readonly window: CalendarWindow
  readonly timeZone: string
  // biome-ignore lint/suspicious/noExplicitAny: as for limits
  readonly startsOn: OrFunction<Weekday | number, any>
}

export type Weekday = 'monday' | 'tuesday' | 'wednesday' | 'thursday' | 'friday' | 'saturday' | 'sunday'

/** Units, or a function of the request. The same function for limits of one unit of one policy. */
// biome-ignore lint/suspicious/noExplicitAny: as for limits
export type LimitCost = OrFunction<number, any>

/** A limit: at most `limit` units of cost per `window`, under one algorithm. Made by a constructor, frozen. */
// biome-ignore lint/suspicious/noExplicitAny: a limit without functions of the request fits every kind of request
export interface Limit<Subject = any> extends CommonOptions<Subject>, LeasableOptions {
  readonly algorithm: Algorithm
  readonly unit: QuotaUnit
  readonly limit: OrFunction<number, Subject>
  /** Milliseconds, or a function of the request. */
  readonly window: OrFunction<Duration, Subject>
  /** Present for windows of the calendar: `window` is their largest length then, apart from changes of clocks. */
  readonly calendar: LimitCalendar | undefined
  /** Whether a cost above its capacity is charged as its capacity. */
  readonly estimate: 'cap' | undefined
  /**
   * The policy of the limit, with a tier as `policy.tier`, where several are decided as one. It separates the counts of equal
   * limits of different policies.
   */
  readonly policy: string | undefined
  /**
   * Present where counts stay valid when the amounts of the limit change, as those of documents do. It is then the end of the
   * limit's id, where the limit counts another key than its policy. Such limits are decided by `consume` alone, never by
   * `charge`.
   */
  readonly carry: string | undefined
  /** @internal The units that a request takes from it, where its policy says so and not the limiter. */
  readonly cost: LimitCost | undefined
  /** Only for `concurrency`, in milliseconds: see `ConcurrencyOptions`. */
  readonly maxHold: number | undefined
  /** @internal Only for `concurrency`: makes the holder of its permits over HTTP, of which policies know nothing. */
  readonly holdPermits: unknown
  /**
   * The kernel and its numbers for one concrete limit and window.
   *
   * @param firstDay of a window of the calendar, as a number, where it depends on the request
   * @throws SluiceError `INVALID_POLICY` where the numbers could round, naming `where`.
   */
  readonly resolve: (where: string, limit: number, windowMs: number, firstDay?: number) => Resolution
}
