// @ts-check
import { everyone, perMinute, perSecond } from '@sluice/core'

/**
 * What the routes of one server are limited to. Names are the server's own, so each server counts by
 * itself, except for `together`: one name on one store is one limiter, wherever it runs.
 *
 * @param {string} server
 * @param {import('@sluice/core').Store} store
 */
export const limitsFor = (server, store) => ({
  limited: { name: `${server}-limited`, store, limit: 5, window: '10s' },
  several: { name: `${server}-several`, store, limits: [perSecond(2), perMinute(10)] },
  costly: { name: `${server}-costly`, store, limit: 20, window: '1m' },
  together: { name: 'together', store, limit: 10, window: '10s', key: everyone() },
})

/**
 * What every limited route answers: the verdict, readable.
 *
 * @param {string} server
 * @param {import('@sluice/core').Verdict | undefined} verdict
 */
export const answer = (server, verdict) => ({
  server,
  allowed: true,
  cost: verdict?.cost,
  limits: verdict?.limits.map(({ name, limit, windowMs, remaining, resetAfterMs }) => ({
    name,
    limit,
    windowMs,
    remaining,
    resetAfterMs,
  })),
  hint: 'Refusals answer 429, with Retry-After and a problem+json body.',
})

/** @param {string} server */
export const openAnswer = (server) => ({ server, hint: 'This route is not limited: no charge, no headers.' })

/**
 * A client's mistake, such as `?units=-1`, is not the server's.
 *
 * @param {unknown} error
 * @returns {{ status: number, body: object }}
 */
export const failure = (error) => {
  const { code, message } = /** @type {{ code?: string, message?: string }} */ (error ?? {})
  return code === 'INVALID_COST'
    ? { status: 400, body: { error: message, hint: 'units is a whole number, 0 or more; 0 only looks.' } }
    : { status: 500, body: { error: message } }
}
