// Requests to other services: what a library takes for each, and for each that waits. The service is a function that responds at once.
import { createLimiter, limitedFetch, memoryStore, perMinute, perSecond } from '@sluice/fetch'
import Bottleneck from 'bottleneck'
import pThrottle from 'p-throttle'
import { answer } from '../lib/child.js'
import { inFlight } from '../lib/keep-in-flight.js'

const URL_OF_SERVICE = 'http://service.test/'
const respond = async () => new Response(null, { status: 204 })
/** Never reached. */
const HIGH = 100_000

/** @type {Record<string, { unlimited: () => () => Promise<unknown>, hourly: (limit: number) => () => Promise<unknown> }>} */
const contestants = {
  sluice: {
    unlimited() {
      const api = limitedFetch(respond, { limits: [perSecond(HIGH)] })
      return () => api(URL_OF_SERVICE)
    },
    hourly(limit) {
      const api = limitedFetch(respond, { limits: [perMinute(limit)], maxWait: Number.POSITIVE_INFINITY })
      return () => api(URL_OF_SERVICE)
    },
  },
  'sluice, acquire alone': {
    unlimited() {
      const limiter = createLimiter({ name: 'a', store: memoryStore(), limits: [perSecond(HIGH)] })
      return async () => {
        await limiter.acquire('a')
        return respond()
      }
    },
    hourly(limit) {
      const limiter = createLimiter({ name: 'a', store: memoryStore(), limits: [perMinute(limit)] })
      return async () => {
        await limiter.acquire('a', { maxWait: Number.POSITIVE_INFINITY, size: 1_000_000 })
        return respond()
      }
    },
  },
  bottleneck: {
    unlimited() {
      const limiter = new Bottleneck({ reservoir: HIGH, reservoirRefreshAmount: HIGH, reservoirRefreshInterval: 1000 })
      return () => limiter.schedule(respond)
    },
    hourly(limit) {
      const limiter = new Bottleneck({ reservoir: limit })
      return () => limiter.schedule(respond)
    },
  },
  'p-throttle': {
    unlimited: () => pThrottle({ limit: HIGH, interval: 1000 })(respond),
    hourly: (limit) => pThrottle({ limit, interval: 60_000 })(respond),
  },
}

/** @param {string} name */
function contestantOf(name) {
  const contestant = contestants[name]
  if (!contestant) throw new Error(`no contestant ${name}`)
  return contestant
}

// Requests that wait hold timers.
process.once('disconnect', () => process.exit())

answer({
  names: () => Object.keys(contestants),
  /** @param {{ name: string, count: number, together: number }} load @returns {Promise<number>} CPU in µs of one request */
  async cpuUs({ name, count, together }) {
    const call = contestantOf(name).unlimited()
    const load = (/** @type {number} */ count) => inFlight({ count, inFlight: together, keys: 1 }, call)
    await load(Math.ceil(count / 4))()
    const before = process.cpuUsage()
    await load(count)()
    const { user, system } = process.cpuUsage(before)
    return (user + system) / count
  },
  /** @param {{ name: string, waiting: number }} load @returns {Promise<number>} bytes of one request that waits */
  async bytes({ name, waiting }) {
    const call = contestantOf(name).hourly(1)
    await call()
    globalThis.gc?.()
    const before = process.memoryUsage().heapUsed
    const all = Array.from({ length: waiting }, () => call())
    await new Promise((resolve) => setTimeout(resolve, 1000))
    globalThis.gc?.()
    const taken = process.memoryUsage().heapUsed - before
    for (const one of all) one.catch(() => {})
    return taken / waiting
  },
})
