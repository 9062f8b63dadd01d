// @ts-check
// Traffic for the demo: at most some 30 requests a second, for a minute.
import { setMaxListeners } from 'node:events'
import { Agent, request } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const LASTS_MS = 60_000
/** Requests at a time. */
const MAX_SOCKETS = 64

const ORDINARY_CLIENTS = 12
const ORDINARY_PATHS = ['/limited', '/policies/home', '/policies/search', '/several', '/open']

/**
 * Sends requests of clients of several kinds, and resolves a minute later. Failures are part of it: the demo may end meanwhile.
 *
 * @param {string} url of the Express server, which takes the address of a client from this machine's `X-Forwarded-For`
 */
export async function sendTraffic(url) {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKETS })
  const end = AbortSignal.timeout(LASTS_MS)
  setMaxListeners(0, end)
  const send = senderTo(url, agent, end)
  const ordinary = Array.from({ length: ORDINARY_CLIENTS }, (_, i) => ordinaryClient(send, i, end))
  await Promise.allSettled([...ordinary, attacker(send, end), politeBot(send, end), crowd(send, end)])
  agent.destroy()
}

/**
 * @typedef {{ status: number, retryAfterMs: number }} Answer
 * @typedef {(ip: string, path: string, method?: string) => Promise<Answer>} Send
 */

/**
 * @param {string} url
 * @param {Agent} agent
 * @param {AbortSignal} signal
 * @returns {Send}
 */
function senderTo(url, agent, signal) {
  return (ip, path, method = 'GET') =>
    new Promise((resolve, reject) => {
      const sent = request(url + path, { agent, method, signal, headers: { 'x-forwarded-for': ip } }, (response) => {
        response.resume()
        response.once('error', reject)
        const retryAfterMs = Number(response.headers['retry-after'] ?? 0) * 1000
        response.once('end', () => resolve({ status: response.statusCode ?? 0, retryAfterMs }))
      })
      sent.once('error', reject)
      sent.end()
    })
}

/**
 * Reads a page every other second or so.
 *
 * @param {Send} send
 * @param {number} i
 * @param {AbortSignal} signal
 */
async function ordinaryClient(send, i, signal) {
  await sleep(i * 150, undefined, { signal })
  for (let n = 0; ; n++) {
    const path = ORDINARY_PATHS[(n + i) % ORDINARY_PATHS.length] ?? '/open'
    await send(`203.0.113.${10 + i}`, path)
    await sleep(1500 + ((n * 7 + i * 13) % 10) * 200, undefined, { signal })
  }
}

/**
 * Tries passwords until a ban refuses every try, and then still tries.
 *
 * @param {Send} send
 * @param {AbortSignal} signal
 */
async function attacker(send, signal) {
  for (;;) {
    await send('198.51.100.66', '/password', 'POST')
    await sleep(250, undefined, { signal })
  }
}

/**
 * Takes as much as it may: after a refusal it waits as long as Retry-After says.
 *
 * @param {Send} send
 * @param {AbortSignal} signal
 */
async function politeBot(send, signal) {
  for (;;) {
    const { status, retryAfterMs } = await send('203.0.113.200', '/limited')
    await sleep(status === 429 ? retryAfterMs : 100, undefined, { signal })
  }
}

/**
 * Comes all at once, every 20 seconds, and waits in the queue.
 *
 * @param {Send} send
 * @param {AbortSignal} signal
 */
async function crowd(send, signal) {
  for (;;) {
    const waiting = Array.from({ length: 30 }, (_, i) => send(`203.0.113.${100 + i}`, '/queue'))
    await Promise.all([...waiting.map((each) => each.catch(() => {})), sleep(20_000, undefined, { signal })])
  }
}
