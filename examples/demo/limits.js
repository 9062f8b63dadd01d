// @ts-check
import { concurrency, delay, everyone, gcra, perMinute, perSecond, queue, shadow, throttle } from '@sluice/core'

const KIB = 1024

/** The response of a login, whether its handler ran or a shadow responder replied. */
export const loginAnswer = { ok: true, hint: 'GET /login shows how often the handler has really run.' }

/** The body of `/download`: 1 MiB, of which 256 KiB come at once and the rest within 3 s. */
export const download = Buffer.alloc(1024 * KIB, 'sluice\n')

/** The duration of a `/busy` request. */
export const BUSY_MS = 2000

/**
 * The limits of the routes of one server. Names begin with the server, so each server counts separately, except for
 * `together`: one name on one store is one limiter in every process.
 *
 * @param {string} server
 * @param {import('@sluice/core').Store} store
 */
export const limitsFor = (server, store) =>
  /** @type {const} */ ({
    limited: { name: `${server}-limited`, store, limit: 5, window: '10s' },
    several: { name: `${server}-several`, store, limits: [perSecond(2), perMinute(10)] },
    costly: { name: `${server}-costly`, store, limit: 20, window: '1m' },
    together: { name: 'together', store, limit: 10, window: '10s', key: everyone() },
    // Two at once, then one every 5 s: a delay rather than a refusal, up to 20 s.
    slow: {
      name: `${server}-slow`,
      store,
      limits: [gcra({ limit: 2, window: '10s' })],
      respond: delay({ max: '20s' }),
    },
    queued: {
      name: `${server}-queue`,
      store,
      limits: [perSecond(2)],
      key: everyone(),
      respond: queue({ maxWait: '30s', priority: isPaying }),
    },
    // A limit of 0, so that every download exceeds it and is slowed down.
    slowed: {
      name: `${server}-download`,
      store,
      limits: [perSecond(0)],
      headers: /** @type {const} */ (false),
      respond: throttle({ after: 256 * KIB, bytesPerSecond: 256 * KIB }),
    },
    busy: { name: `${server}-busy`, store, limits: [concurrency({ limit: 2 })], key: everyone() },
    reported: { name: `${server}-reported`, store, limit: 2, window: '10s', enforce: { mode: 'report' } },
    // Three tries; whoever goes on is banned, and for longer each time.
    password: {
      name: `${server}-password`,
      store,
      limit: 3,
      window: '1m',
      ban: { by: 'ip', after: 5, within: '1m', for: ['2m', '10m'] },
    },
    login: {
      name: `${server}-login`,
      store,
      limit: 2,
      window: '10s',
      respond: shadow({ body: loginAnswer }),
    },
  })

/** Keys of paying customers, as a database would have them. */
const PAYING = new Set(['gold'])

/**
 * Whether the server knows the key of a paying customer: anyone could send a header that merely claims it.
 *
 * @param {unknown} _request
 * @param {import('@sluice/core').HttpContext<any>} context
 */
function isPaying(_request, context) {
  return PAYING.has(context.header('x-api-key') ?? '') ? 1 : 0
}

/**
 * The cost of a `/costly` request, to try costs out. In production, the server determines the cost, for example by route or
 * by the size of the work: a client that may choose it chooses the least.
 *
 * @param {unknown} asked
 */
export const unitsOf = (asked) => Math.max(1, Math.trunc(Number(asked)) || 1)

/**
 * The response of every limited route: its verdict.
 *
 * @param {string} server
 * @param {import('@sluice/core').Verdict | undefined} verdict
 */
export const answer = (server, verdict) => ({
  server,
  kind: verdict?.kind,
  allowed: verdict?.allowed,
  reported: verdict?.reported,
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
