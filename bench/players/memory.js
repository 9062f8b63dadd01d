// One contestant with state in this process. For bytes, start it with --expose-gc.
import { checkThatItCounts, contestants } from '../contestants/memory.js'
import { answer } from '../lib/child.js'

/** @type {import('../contestants/memory.js').Contestant} */
let contestant

/** @type {{ names: string[], next: number, decide: import('../contestants/memory.js').Player['decide'] }} */
let filled

answer({
  /** @param {{ name: string }} params */
  async join({ name }) {
    contestant = /** @type {typeof contestant} */ (contestants[name])
    await checkThatItCounts(contestant)
  },

  /** Decides once on each key, with a new state each time. @param {{ keys: number, limit: number }} load */
  async fill({ keys, limit }) {
    // The earlier state must not take memory.
    filled = { names: [], next: 0, decide: () => undefined }
    const { decide } = await contestant.join({ limit, windowMs: 600_000, maxKeys: keys })
    filled = { names: Array.from({ length: keys }, (_, i) => `user:${i}`), next: 0, decide }
    for (const name of filled.names) await decide(name)
  },

  /** Decides on the keys of its state in a scattered order, and continues where it stopped. @param {{ count: number }} load */
  async decide({ count }) {
    const { names, next, decide } = filled
    filled.next += count
    const cpu = process.cpuUsage()
    const startedMs = performance.now()
    for (let i = next; i < next + count; i++) await decide(/** @type {string} */ (names[(i * 7919) % names.length]))
    const seconds = (performance.now() - startedMs) / 1000
    const { user, system } = process.cpuUsage(cpu)
    return { perSecond: count / seconds, nodeUs: (user + system) / count }
  },

  /** @param {{ keys: number }} load */
  async bytesPerKey({ keys }) {
    // Long enough, so that no state ends and is swept before its size is measured.
    const player = await contestant.join({ limit: 100, windowMs: 86_400_000, maxKeys: keys })
    await player.decide('first')
    const before = usedBytes()
    for (let i = 0; i < keys; i++) await player.decide(`user:${i}`)
    const used = usedBytes() - before
    // It must not have been collected before it was measured.
    await player.decide('last')
    return used / keys
  },
})

function usedBytes() {
  for (let i = 0; i < 4; i++) /** @type {() => void} */ (globalThis.gc)()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
