import type { ByteUnit, Plan, ResolvedLimit } from '../store/store.js'
import type { KeyFunction, Limit } from './limits/limit.js'
import type { ReserveStep } from './limits/reserve.js'

/** A plan, and how its results are read in the order in which the limits were written. */
export interface ReadablePlan extends Plan {
  readonly resolved: readonly ResolvedLimit[]
  /** The position of each limit of `resolved` in a result. */
  readonly positions: readonly number[]
  readonly hasPermits: boolean
  /** Whether it is one limit, which is no queueing one and spreads no times: nearly every plan. */
  readonly isSimple: boolean
  /** Costs of 1 for every cell: nearly every request's. */
  readonly ones: readonly number[]
  /** Which cell each limit of `resolved` is counted in. */
  readonly cellOf: readonly number[]
  /** Which bytes a cell counts instead of cost; undefined where none counts any. */
  readonly byteUnits: readonly (ByteUnit | undefined)[] | undefined
  /** What a cell keeps for higher priorities; undefined where none keeps anything. */
  readonly reserves: readonly (readonly ReserveStep[])[] | undefined
  /** The limits as they were made, in the same order. */
  readonly definitions: readonly Limit[]
}

/** The tier that a policy is for. */
export interface TierOf {
  readonly name: string
  readonly shared: ReadonlyMap<Limit, number>
  /** The key functions of all tiers so far, by their kind: tiers share blocks, so a kind means one thing in all of them. */
  readonly known: Map<string, { key: KeyFunction<never> | undefined; field: string }>
}
