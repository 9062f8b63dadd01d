// Sends one request repeatedly over open connections, and times each response, in a separate process. It is finer than
// autocannon, which counts whole milliseconds.
import { connect } from 'node:net'
import { answer } from '../lib/child.js'

answer({
  /**
   * @param {{ port: number, connections: number, seconds: number, request: string }} load
   */
  async send({ port, connections, seconds, request }) {
    /** @type {number[]} */
    const took = []
    const startedAt = performance.now()
    const endsAt = startedAt + seconds * 1000
    await Promise.all(Array.from({ length: connections }, () => keepAsking(port, request, endsAt, took)))
    const elapsed = (performance.now() - startedAt) / 1000
    took.sort((a, b) => a - b)
    const at = (/** @type {number} */ share) => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0
    return { requests: took.length, seconds: elapsed, p50: at(0.5), p99: at(0.99) }
  },
})

/**
 * @param {number} port
 * @param {string} request
 * @param {number} endsAt
 * @param {number[]} took ms of each response
 * @returns {Promise<void>}
 */
function keepAsking(port, request, endsAt, took) {
  return new Promise((resolve, reject) => {
    let text = ''
    let askedAt = 0
    const socket = connect(port, '127.0.0.1')
    socket.setNoDelay(true)
    const ask = () => {
      askedAt = performance.now()
      socket.write(request)
    }
    socket.once('connect', ask)
    socket.setEncoding('latin1').on('data', (/** @type {string} */ chunk) => {
      text += chunk
      if (!isWhole(text)) return
      if (!/^HTTP\/1\.1 2/.test(text)) {
        socket.destroy()
        reject(new Error(`answered ${text.slice(0, 300)}`))
        return
      }
      text = ''
      const now = performance.now()
      took.push(now - askedAt)
      if (now < endsAt) ask()
      else socket.end(resolve)
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('the connection was closed')))
  })
}

/** @param {string} text */
function isWhole(text) {
  const end = text.indexOf('\r\n\r\n')
  if (end < 0) return false
  return text.length - end - 4 >= Number(/^content-length: (\d+)/im.exec(text)?.[1] ?? 0)
}
