// @ts-check
import { hostname, networkInterfaces } from 'node:os'
import { Link, makeConsole, object, Problem, refuseForwarded, route } from '@sluice/console/internal'
import { rateLimit } from '@sluice/express'
import { limitsFor } from './limits.js'
import { sendTraffic } from './traffic.js'

const PATH = '/sluice'

/** The links that may have open sessions; the oldest ends when there are more. */
const MAX_LINKS = 8

/**
 * @typedef {object} DemoConsole
 * @property {() => string} newLink the address of a page that opens one session; those that are open go on
 * @property {(request: import('express').Request, response: import('express').Response, target: string) => void} serve
 * @property {() => void} close
 */

/**
 * The console of the demo: for whoever reads the link in the terminal. An application of yours takes `consoleFor` of
 * `@sluice/console/express`, and its own sessions.
 *
 * @param {import('@sluice/core').Store} store
 * @param {import('@sluice/policies').Policies} policies
 * @param {number} port
 * @param {string} host where the demo listens
 * @returns {DemoConsole}
 */
export function demoConsole(store, policies, port, host) {
  /** @type {Link[]} the newest first: only that one can be opened */
  const links = []
  const isLoopback = ['127.0.0.1', '::1', 'localhost'].includes(host)
  const limiters = ['express', 'koa', 'fastify'].flatMap((server) =>
    // The limit of downloads has no units at all: it slows down, and refuses nobody.
    Object.entries(limitsFor(server, store)).flatMap(([name, options]) =>
      name === 'slowed' || (name === 'together' && server !== 'express') ? [] : [rateLimit(options).limiter],
    ),
  )
  const console = makeConsole(
    {
      store,
      limiters,
      policies: ['express', 'koa', 'fastify'].map((name) => ({ policies, name })),
      hosts: hostsAt(port, isLoopback),
      traffic: true,
      authorize: (/** @type {import('express').Request} */ request) =>
        links.some((link) => link.isShownIn(request)) && { name: 'you', may: 'act' },
    },
    {
      open: { '/api/session': { method: 'POST', run: (exchange) => openNewest(links, exchange) } },
      routes: [trafficRoute(port)],
      ...(isLoopback && { check: refuseForwarded }),
    },
  )
  return {
    newLink() {
      const link = new Link()
      links.unshift(link)
      links.length = Math.min(links.length, MAX_LINKS)
      return `http://localhost:${port}${PATH}/#${link.secret}`
    },
    serve(request, response, target) {
      const [path = '/'] = target.split('?', 1)
      void console.serve({ request, raw: request, response, path, ip: request.ip, parsed: undefined })
    },
    close: console.close,
  }
}

/**
 * @param {Link[]} links
 * @param {Parameters<Link['open']>[0]} exchange
 */
function openNewest([newest], exchange) {
  if (!newest) throw new Problem(403, 'the terminal has printed no link yet')
  return newest.open(exchange)
}

/**
 * The names of this machine, as browsers send them.
 *
 * @param {number} port
 * @param {boolean} isLoopback
 */
function hostsAt(port, isLoopback) {
  const addresses = Object.values(networkInterfaces()).flatMap((all = []) =>
    all.map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address)),
  )
  const others = isLoopback ? [] : [hostname(), ...addresses]
  return [...new Set(['localhost', '127.0.0.1', '[::1]', ...others])].map((name) => `${name}:${port}`)
}

/** @param {number} port */
function trafficRoute(port) {
  /** @type {Promise<unknown> | undefined} */
  let running
  return route({
    method: 'POST',
    path: '/api/demo/traffic',
    id: 'demoTraffic',
    summary: 'Sends traffic to the demo for a minute.',
    may: 'act',
    body: object({}),
    answer: 'A sentence about it.',
    run() {
      if (running) throw new Problem(409, 'the traffic of the last time is not over: it takes a minute')
      running = sendTraffic(`http://127.0.0.1:${port}`).finally(() => {
        running = undefined
      })
      return { message: 'Traffic is on its way for a minute: watch the overview.' }
    },
  })
}
