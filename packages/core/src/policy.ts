import { durationMs, durationText } from './duration.js'
import { invalidPolicy, SluiceError, show } from './errors.js'
import type { HttpContext } from './http/context.js'
import { headerName, oneOf, optionalFunction, wholeNumber } from './limits/checks.js'
import { defaultLimit } from './limits/default-limit.js'
import type { KeyFunction, Limit, OrFunction, Resolution } from './limits/limit.js'
import type { Cell, Plan, ResolvedLimit } from './store.js'

export interface PolicyOptions<Subject> {
  /** Names the policy in keys, headers and errors: letters, digits, `_`, `-`. @default 'default' */
  readonly name?: string
  /** Units per window, for a policy of one limit. */
  readonly limit?: OrFunction<number, Subject>
  /** Whole milliseconds or a duration such as `'1m'`; beside `limit`. */
  readonly window?: OrFunction<number | string, Subject>
  /** Several limits, decided together, all or none; instead of `limit` and `window`. */
  readonly limits?: readonly Limit<Subject>[]
  /** What is counted, for limits that name no key of their own. */
  readonly key?: KeyFunction<Subject>
  /** Whether a refused request is charged too, as far as each limit can hold it. @default 'none' */
  readonly onDeny?: 'none' | 'charge'
}

export const POLICY_OPTIONS = ['name', 'limit', 'window', 'limits', 'key', 'onDeny'] as const

/** A plan, and how its answers are read back in the order the limits were written in. */
export interface ReadablePlan extends Plan {
  readonly resolved: readonly ResolvedLimit[]
  /** Where in an answer each limit of `resolved` stands. */
  readonly positions: readonly number[]
  /** Units that each cell can ever hold at once: a higher cost is impossible. */
  readonly hasLeases: boolean
  readonly hasQueue: boolean
  /** Costs of 1 for every cell: nearly every request's. */
  readonly ones: readonly number[]
  /** Which cell each limit of `resolved` is counted in. */
  readonly cellOf: readonly number[]
  /** The limits as they were made, in the same order. */
  readonly definitions: readonly Limit[]
}

/** Plans kept per policy whose limits are functions of the request. */
const MAX_PLANS = 1000

/** A named list of limits that are decided together. Checked when it is made; knows no store. */
export class Policy<Subject> {
  readonly name: string
  readonly limits: readonly Limit<Subject>[]
  readonly chargesRefusals: boolean
  /** The distinct key functions of all limits; `undefined` is the policy's own default. */
  readonly keys: readonly (KeyFunction<Subject> | undefined)[]
  readonly #keyOf: readonly number[]
  readonly #plans = new Map<string, ReadablePlan>()
  readonly #static: ReadablePlan | undefined

  constructor(options: PolicyOptions<Subject>) {
    this.name =
      options.name === undefined ? 'default' : headerName(`policy ${show(options.name)}`, 'name', options.name)
    const where = this.where
    optionalFunction(where, 'key', options.key)
    this.chargesRefusals = oneOf(where, 'onDeny', options.onDeny ?? 'none', ['none', 'charge']) === 'charge'
    this.limits = limitsOf(where, options)
    const keyFunctions = this.limits.map((limit) => limit.key ?? options.key)
    this.keys = [...new Set(keyFunctions)]
    this.#keyOf = keyFunctions.map((key) => this.keys.indexOf(key))
    refuseEqualNames(where, this.limits)

    const values = this.limits.map(({ limit, window }) => [limit, window])
    const fixed = values.flat().every((value) => typeof value === 'number')
    this.#static = fixed ? this.#makePlan(values as [number, number][]) : undefined
  }

  get where(): string {
    return `policy "${this.name}"`
  }

  /** The plan for this subject: the same object for the same numbers. */
  plan(subject: Subject, context: HttpContext<Subject>): ReadablePlan {
    if (this.#static) return this.#static
    const values = this.limits.map(({ limit, window }): [number, number] => [
      typeof limit === 'function' ? wholeNumber(this.where, 'limit', limit(subject, context), 0) : limit,
      typeof window === 'function' ? durationMs(this.where, 'window', window(subject, context)) : (window as number),
    ])
    const id = values.join()
    let plan = this.#plans.get(id)
    if (!plan) {
      if (this.#plans.size >= MAX_PLANS) this.#plans.clear()
      plan = this.#makePlan(values)
      this.#plans.set(id, plan)
    }
    return plan
  }

  #makePlan(values: readonly (readonly [number, number])[]): ReadablePlan {
    const resolutions = this.limits.map((limit, i) => limit.resolve(this.where, ...(values[i] as [number, number])))
    const resolved = namesFor(this.name, this.limits, resolutions).map((name, i) =>
      Object.freeze({ name, ...(resolutions[i] as Resolution).report }),
    )
    const cells = cellsFor(resolutions, resolved, this.#keyOf)
    const inAnswer = cells.flatMap((cell) => cell.limits)
    return Object.freeze({
      policy: this.name,
      cells,
      identities: this.keys.length,
      reports: resolved.length,
      resolved,
      positions: resolved.map((limit) => inAnswer.indexOf(limit)),
      hasLeases: cells.some((cell) => cell.kernel === 'concurrency'),
      hasQueue: resolved.some((limit) => limit.queue),
      ones: cells.map(() => 1),
      cellOf: resolved.map((limit) => cells.findIndex((cell) => cell.limits.includes(limit))),
      definitions: this.limits,
    })
  }
}

function limitsOf<Subject>(where: string, options: PolicyOptions<Subject>): readonly Limit<Subject>[] {
  const { limit, window, limits } = options
  if (limits === undefined) {
    if (limit === undefined) invalidPolicy(where, 'limit', 'a limit and a window, or limits', limit)
    try {
      return Object.freeze([defaultLimit<Subject>({ limit, window: window as OrFunction<number, Subject> })])
    } catch (error) {
      // The one limit of a policy is known by the policy's name, not by the algorithm it became.
      throw error instanceof SluiceError
        ? new SluiceError(error.code, error.message.replace(/^\w+(?=:)/, where), { cause: error })
        : error
    }
  }
  if (limit !== undefined || window !== undefined) {
    throw new SluiceError('INVALID_POLICY', `${where}: limits: expected none beside limit and window`)
  }
  if (!Array.isArray(limits) || limits.length === 0 || limits.length > MAX_LIMITS) {
    invalidPolicy(where, 'limits', `an array of 1 to ${MAX_LIMITS} limits`, limits)
  }
  limits.forEach((item, i) => {
    if (typeof item?.resolve !== 'function') {
      invalidPolicy(where, `limits[${i}]`, 'a limit made by a constructor such as perMinute(20)', item)
    }
  })
  return Object.freeze([...limits])
}

/** Most limits in one policy. */
const MAX_LIMITS = 32

function refuseEqualNames(where: string, limits: readonly Limit[]): void {
  const seen = new Set<string>()
  for (const { name } of limits) {
    if (name === undefined) continue
    // Without regard to case: clients may fold the names of structured fields.
    if (seen.has(name.toLowerCase())) invalidPolicy(where, 'name', 'limit names that differ by more than case', name)
    seen.add(name.toLowerCase())
  }
}

/** A name for each limit: its own; the policy's, if it is the only one; or the policy's with its window. */
function namesFor(policy: string, limits: readonly Limit[], resolutions: readonly Resolution[]): string[] {
  const taken = new Set(limits.flatMap(({ name }) => (name === undefined ? [] : [name.toLowerCase()])))
  return limits.map(({ name }, i) => {
    if (name !== undefined) return name
    const report = (resolutions[i] as Resolution).report
    const base = limits.length === 1 ? policy : `${policy}-${durationText(report.windowMs)}`
    let free = base
    for (let n = 2; taken.has(free.toLowerCase()); n++) free = `${base}-${n}`
    taken.add(free.toLowerCase())
    return free
  })
}

/** One cell per limit, but one log for all log limits on the same key. */
function cellsFor(
  resolutions: readonly Resolution[],
  resolved: readonly ResolvedLimit[],
  keyOf: readonly number[],
): readonly Cell[] {
  const cells: Cell[] = []
  const ids = new Set<string>()
  const add = (cell: Cell) => {
    // Equal limits on different keys must not meet where the keys happen to be equal text.
    let id = cell.id
    for (let n = 2; ids.has(id); n++) id = `${cell.id}.${n}`
    ids.add(id)
    cells.push(Object.freeze({ ...cell, id }))
  }
  const logged = new Set<number>()
  resolutions.forEach(({ kernel, id, params }, i) => {
    const identity = keyOf[i] as number
    if (kernel !== 'log') return add({ kernel, id, params, identity, limits: [resolved[i] as ResolvedLimit] })
    if (logged.has(identity)) return
    logged.add(identity)
    add(
      logCell(
        resolved.filter((_, j) => resolutions[j]?.kernel === 'log' && keyOf[j] === identity),
        identity,
      ),
    )
  })
  return Object.freeze(cells)
}

/** Sorted, so that the order in which limits are written makes no difference to the key. */
function logCell(limits: readonly ResolvedLimit[], identity: number): Cell {
  const sorted = [...limits].sort((a, b) => a.windowMs - b.windowMs || a.limit - b.limit)
  const pairs = sorted.flatMap(({ limit, windowMs }) => [limit, windowMs])
  const most = Math.max(...sorted.map(({ limit }) => limit))
  const longest = Math.max(...sorted.map(({ windowMs }) => windowMs))
  return { kernel: 'log', id: `log.${pairs.join('.')}`, params: [most, longest, ...pairs], identity, limits: sorted }
}
