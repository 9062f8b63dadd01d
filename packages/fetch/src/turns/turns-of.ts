import { durationMs, invalidPolicy, knownOptions } from '@sluice/core/internal'
import type { OutboundOptions, OutboundRequest } from '../options.js'
import type { Turn } from './turn.js'
import { Turns } from './turns.js'

const KNOWN = ['name', 'store', 'limits', 'key', 'maxWait', 'priority', 'fairBy', 'sharedTurns', 'pace', 'onWait']

/** Waits for the turn of its request, in each attempt. @throws SluiceError `WAIT_EXCEEDED`; the reason of the signal */
export type NextTurn = () => Promise<Turn>

/**
 * How requests get their turns by these options. `others`: further names of options.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function turnsOf(
  options: OutboundOptions,
  others: readonly string[] = [],
): (request: OutboundRequest, signal: AbortSignal | undefined) => NextTurn {
  const { name = 'fetch', maxWait = '2m', pace, key, priority = 0, fairBy } = options
  const where = `policy "${name}"`
  knownOptions(where, options, [...KNOWN, ...others])
  if (pace !== undefined && pace !== 'even' && pace !== 'burst') invalidPolicy(where, 'pace', '"even" or "burst"', pace)
  const isEndless = maxWait === Number.POSITIVE_INFINITY
  const maxWaitMs = isEndless ? maxWait : durationMs(where, 'maxWait', maxWait, ', or Infinity')
  const turns = new Turns(options)
  return (request, signal) => {
    const { origin } = request.url
    const keyText = typeof key === 'function' ? key(request) : (key ?? origin)
    const terms = {
      origin,
      maxWaitMs,
      signal,
      priority: typeof priority === 'function' ? priority(request) : priority,
      fairBy: fairBy?.(request),
    }
    return () => turns.take(keyText, terms)
  }
}
