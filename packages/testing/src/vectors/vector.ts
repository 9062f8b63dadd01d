import buckets from './buckets.json' with { type: 'json' }
import concurrency from './concurrency.json' with { type: 'json' }
import exactLog from './exact-log.json' with { type: 'json' }
import fixedWindow from './fixed-window.json' with { type: 'json' }
import keys from './keys.json' with { type: 'json' }
import refunds from './refunds.json' with { type: 'json' }
import slidingWindow from './sliding-window.json' with { type: 'json' }
import steppingBack from './stepping-back.json' with { type: 'json' }

/**
 * A trace and its expected results, as data. `limit` and `limits` are a constructor's options beside its name in `algorithm`,
 * with the name of a part of the step's key where a constructor takes a function.
 */
export interface Vector {
  readonly title: string
  readonly limit?: VectorLimit
  readonly limits?: readonly VectorLimit[]
  readonly onDeny?: 'charge'
  /** The order in which the limits are written makes no difference: every order is run. */
  readonly anyOrder?: boolean
  readonly steps: readonly VectorStep[]
}

export interface VectorLimit {
  readonly algorithm: string
  readonly key?: string
  readonly [option: string]: unknown
}

export interface VectorStep {
  /** Milliseconds since midnight. */
  readonly atMs: number
  /** `refund` refunds the charge of step `of`, the first being 1, and then peeks. @default 'consume' */
  readonly op?: 'consume' | 'peek' | 'refund'
  readonly of?: number
  /** @default 1 */
  readonly cost?: number
  /** @default one key for the whole vector */
  readonly key?: string | Readonly<Record<string, string>>
  /** The number of requests, all together, or `everyMs` apart. @default 1 */
  readonly times?: number
  readonly everyMs?: number
  readonly why: string
  /** Fields of the verdict; of the last, if there are several. `null` is undefined. */
  readonly expect: {
    /** How many of `times` are allowed. */
    readonly admitted?: number
    /** Fields of the reports, in the order of the limits. */
    readonly limits?: readonly Readonly<Record<string, unknown>>[]
    /** Fields of the reports, by the limits' names. */
    readonly byName?: Readonly<Record<string, Readonly<Record<string, unknown>>>>
    readonly [field: string]: unknown
  }
}

/** Every vector of this folder, by file. */
export const VECTORS: Readonly<Record<string, readonly Vector[]>> = {
  buckets,
  concurrency,
  'exact-log': exactLog,
  'fixed-window': fixedWindow,
  keys,
  refunds,
  'sliding-window': slidingWindow,
  'stepping-back': steppingBack,
} as Readonly<Record<string, readonly unknown[]>> as Readonly<Record<string, readonly Vector[]>>
