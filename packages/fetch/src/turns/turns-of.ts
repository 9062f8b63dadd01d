import { type Limit, SluiceError, type Units } from '@sluice/core'
import { checkPriority, durationMs, invalidPolicy, knownOptions, optionalFunction } from '@sluice/core/internal'
import { circuitsOf } from '../circuit/circuits.js'
import type { OutboundOptions, OutboundRequest, WaitProgress } from '../options.js'
import type { QuotaSource } from '../quota/quota-types.js'
import { type BodyMeter, Costs } from '../usage/costs.js'
import { warnOnce } from '../warn-once.js'
import { OWN_UNITS } from './cells.js'
import type { Turn } from './turn.js'
import { Turns } from './turns.js'

const KNOWN = [
  'name',
  'store',
  'limits',
  'cost',
  'usage',
  'key',
  'maxWait',
  'priority',
  'fairBy',
  'sharedTurns',
  'pace',
  'onWait',
  'circuit',
]

/** The turn of a request, and what else its response tells. */
export interface MeteredTurn extends Turn {
  /** Its response has this status; undefined: it has none. */
  ended(status: number | undefined): void
  /** Undefined where the body of the response does not matter. */
  meter(response: QuotaSource): BodyMeter | undefined
}

/**
 * Waits for the turn of its request, in each attempt.
 *
 * @throws SluiceError `WAIT_EXCEEDED`, `CIRCUIT_OPEN`; the reason of the signal
 */
export type NextTurn = () => Promise<MeteredTurn>

export interface TurnSource {
  /** Whether the body of a request matters. */
  readonly readsBodies: boolean
  /** @throws SluiceError `INVALID_COST`; errors of functions in the options */
  of(request: OutboundRequest, signal: AbortSignal | undefined): NextTurn
}

/**
 * How requests get their turns by these options. `others`: further names of options.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function turnsOf(options: OutboundOptions, others: readonly string[] = []): TurnSource {
  const where = `policy "${(options as OutboundOptions | null)?.name ?? 'fetch'}"`
  knownOptions(where, options, [...KNOWN, ...others])
  const { limits = [], maxWait = '2m', pace, key, priority = 0, fairBy } = options
  checkLimits(where, limits)
  if (pace !== undefined && pace !== 'even' && pace !== 'burst') invalidPolicy(where, 'pace', '"even" or "burst"', pace)
  const isEndless = maxWait === Number.POSITIVE_INFINITY
  const maxWaitMs = isEndless ? maxWait : durationMs(where, 'maxWait', maxWait, ', or Infinity')
  optionalFunction(where, 'fairBy', fairBy)
  if (typeof priority !== 'function') checkPriority(where, priority)
  const turns = new Turns({ ...options, onWait: listenerOf(where, options.onWait) })
  const costs = new Costs(options)
  const circuits = circuitsOf(options)
  return {
    readsBodies: costs.readsBodies,
    of(request, signal) {
      const { origin } = request.url
      const keyText = typeof key === 'function' ? key(request) : (key ?? origin)
      const terms = {
        origin,
        maxWaitMs,
        signal,
        priority: checkPriority(where, typeof priority === 'function' ? priority(request) : priority),
        fairBy: fairBy && clientOf(where, fairBy(request)),
        cost: withoutOwn(where, 'cost', costs.of(request)),
      }
      return async () => {
        circuits?.check(origin)
        const turn = await turns.take(keyText, terms)
        // Without the store, the charge stays.
        const settle = (actual: Units) => void turn.settle(actual).catch(() => {})
        return {
          ...turn,
          settle: async (actual) => turn.settle(withoutOwn(where, 'settle', actual)),
          ended(status) {
            if (status !== undefined || !hasLeft(signal)) circuits?.ended(origin, status !== undefined && status < 500)
          },
          meter: (response) => costs.meter(response, terms.cost, settle),
        }
      }
    },
  }
}

/** Whether the caller gave its request up, not because the service took too long. */
function hasLeft(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true && (signal.reason as Error | undefined)?.name !== 'TimeoutError'
}

/** The checks of limits beside those of `createLimiter`. @throws SluiceError `INVALID_POLICY` */
function checkLimits(where: string, limits: unknown): void {
  if (!Array.isArray(limits)) invalidPolicy(where, 'limits', 'an array of limits, such as [perSecond(10)]', limits)
  for (const limit of limits) {
    const unit = (limit as Limit<string> | null)?.unit
    if (OWN_UNITS.includes(unit as string)) {
      invalidPolicy(
        where,
        'limits: unit',
        `none of ${OWN_UNITS.join(', ')}, which are counted beside your limits`,
        unit,
      )
    }
  }
}

/** @throws SluiceError `INVALID_COST` */
function withoutOwn(where: string, field: string, units: Units): Units {
  const own = OWN_UNITS.find((unit) => units && Object.hasOwn(units, unit))
  if (own === undefined) return units
  throw new SluiceError('INVALID_COST', `${where}: ${field}: expected units that its limits count, got "${own}"`)
}

/** `onWait`, whose errors are warnings. @throws SluiceError `INVALID_POLICY` */
function listenerOf(where: string, onWait: OutboundOptions['onWait']): OutboundOptions['onWait'] {
  optionalFunction(where, 'onWait', onWait)
  if (!onWait) return undefined
  const warn = warnOnce(where, 'onWait')
  // An async function takes what is thrown as well as what rejects.
  const call = async (progress: WaitProgress) => onWait(progress)
  return (progress) => void call(progress).catch(warn)
}

/** @throws SluiceError `INVALID_POLICY` */
function clientOf(where: string, client: unknown): string {
  return typeof client === 'string' && client !== ''
    ? client
    : invalidPolicy(where, 'fairBy', 'a non-empty string', client)
}
