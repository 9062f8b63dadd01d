// Calls of acquire that wait for one key, while others come and leave. The packages are those of any checkout.
import { answer } from '../lib/child.js'

/** @type {import('@sluice/core').Limiter<string>} */
let limiter
/** @type {AbortController[]} */
const waiting = []
let calls = 0
let clients = 0

const turn = () => new Promise((resolve) => setImmediate(resolve))

function come() {
  const leaving = new AbortController()
  const fair = clients > 0 ? { fairBy: `client ${calls++ % clients}` } : {}
  limiter.acquire('key', { signal: leaving.signal, ...fair }).catch(() => {})
  waiting.push(leaving)
}

answer({
  /** `clients`: 0 for first come, first served. @param {{ build: string, count: number, clients: number }} params */
  async join({ build, count, clients: among }) {
    const { createLimiter, gcra } = await import(new URL('packages/core/dist/index.js', build).href)
    limiter = createLimiter({ name: 'waiters', limits: [gcra({ limit: 1, window: '1d', burst: 1 })] })
    clients = among
    await limiter.consume('key')
    for (let i = 0; i < count; i++) come()
    await turn()
  },

  /** One waiter leaves and one comes, `count` times. @param {{ count: number }} load */
  async exchange({ count }) {
    const cpu = process.cpuUsage()
    for (let i = 0; i < count; i++) {
      // From any place in the queue.
      const [left] = waiting.splice((i * 7919) % waiting.length, 1)
      left?.abort()
      come()
      if (i % 20 === 19) await turn()
    }
    const { user, system } = process.cpuUsage(cpu)
    return (user + system) / count
  },
})
