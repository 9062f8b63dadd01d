// Servers that are measured, each in a separate process.
import { CLIENT_HEADER, peers } from '../contestants/http.js'
import { startChild } from './child.js'
import { ending } from './ending.js'

/**
 * @typedef {object} Kind
 * @property {import('../contestants/http.js').Framework} framework
 * @property {import('../contestants/http.js').Limiter} limiter
 * @property {'memory' | 'redis'} [where]
 */

/** @type {Kind['framework'][]} */
export const FRAMEWORKS = ['Fastify', 'Koa', 'Express']

/** The cost of waiting alone, by the cheapest means. */
const FLOORS = { turn: 'floor: the end of the turn', ping: 'floor: one PING per turn' }
/** @param {Pick<Kind, 'limiter'>} kind */
export const isFloor = ({ limiter }) => limiter === 'bare' || limiter in FLOORS

/** Ours with other options. */
const FORMS = { 'sluice-skip': 'sluice, skipped', 'sluice-silent': 'sluice without fields' }

/** @param {Kind} kind */
function nameOf({ framework, limiter, where }) {
  if (limiter === 'turn' || limiter === 'ping') return FLOORS[limiter]
  const ours = limiter === 'sluice-skip' || limiter === 'sluice-silent' ? FORMS[limiter] : limiter
  const who = limiter === 'peer' && where ? peers[framework][where] : ours
  return where ? `${who}, ${where}` : who
}

/**
 * @param {import('./ending.js').Keep} keep
 * @param {Kind} kind
 * @param {number} [redisPort]
 */
export async function startServer(keep, kind, redisPort) {
  const child = keep(startChild(SERVER))
  const port = await child.call('serve', askFor(kind, redisPort))
  return { ...kind, child, port: Number(port), name: nameOf(kind) }
}

/**
 * Throws unless a server like this, in a separate process, refuses requests over its limit.
 *
 * @param {Kind} kind
 * @param {number} [redisPort]
 */
export function checkThatItCounts(kind, redisPort) {
  return ending(async (keep) => {
    const limit = 5
    const headers = { [CLIENT_HEADER]: `check:${Math.random()}` }
    const port = await keep(startChild(SERVER)).call('serve', { ...askFor(kind, redisPort), limit })
    const statuses = []
    for (let i = 0; i <= limit; i++) {
      const response = await fetch(`http://127.0.0.1:${port}`, { headers })
      await response.text()
      statuses.push(response.status)
    }
    const expected = [...new Array(limit).fill(200), 429]
    if (String(statuses) !== String(expected)) throw new Error(`${JSON.stringify(kind)} answered ${statuses}`)
  })
}

/** @param {Kind} kind @param {number} [redisPort] */
function askFor({ framework, limiter, where }, redisPort) {
  return { framework, limiter, ...(where === 'redis' ? { redisPort } : {}) }
}

const SERVER = new URL('../players/http-server.js', import.meta.url)
