// Requests to other services: CPU of each, and memory of each that waits, beside bottleneck and p-throttle.
import { startChild } from '../lib/child.js'
import { ratio, spread } from '../lib/stats.js'
import { figure, withSpread } from '../report/text.js'

const OURS = 'sluice'

/** @type {import('../run.js').Measure} */
export async function measure({ rounds, size }) {
  // A request of bottleneck takes some ms by the clock, so fewer of them are enough.
  const countOf = (/** @type {string} */ name) => size(name === 'bottleneck' ? 4000 : 20_000, 200)
  const waiting = size(10_000, 100)
  const names = /** @type {string[]} */ (await withPlayer((player) => player.call('names')))
  const regimes = [1, 64, 2000]
  /** @type {Record<string, Record<string, number[]>>} CPU in µs by regime and contestant, round by round */
  const cpuUs = Object.fromEntries(
    regimes.map((together) => [together, Object.fromEntries(names.map((name) => [name, []]))]),
  )
  /** @type {Record<string, number>} */
  const bytes = {}
  for (let round = 0; round < rounds(7); round++) {
    for (const name of names) {
      for (const together of regimes) {
        const us = await withPlayer((player) => player.call('cpuUs', { name, count: countOf(name), together }))
        cpuUs[together]?.[name]?.push(us)
      }
    }
  }
  for (const name of names) bytes[name] = await withPlayer((player) => player.call('bytes', { name, waiting }))
  const of = (/** @type {number} */ together, /** @type {string} */ name) => cpuUs[together]?.[name] ?? []
  return {
    title: 'Requests to other services',
    text: [
      `${countOf(OURS).toLocaleString('en')} requests (of bottleneck, ${countOf('bottleneck').toLocaleString('en')}) with a limit that is never reached, to a service that responds at once, in memory: ` +
        'the CPU of each, with so many called together. `limitedFetch` also reads each response for quotas. ' +
        `Memory: ${waiting.toLocaleString('en')} requests that wait for a limit, heap after garbage collection.`,
    ],
    tables: [
      {
        caption: 'CPU in µs and bytes of a request',
        head: [
          '',
          ...regimes.map((n) => `${n.toLocaleString('en')} together, µs`),
          'sluice / it, 64 together',
          'bytes, waiting',
        ],
        rows: names.map((name) => [
          name,
          ...regimes.map((together) => withSpread(spread(of(together, name)))),
          figure(ratio(of(64, OURS), of(64, name)).median),
          figure(bytes[name] ?? Number.NaN),
        ]),
      },
    ],
    plots: {},
    raw: { cpuUs, bytes },
  }
}

/**
 * @template Result
 * @param {(player: import('../lib/child.js').Child) => Promise<Result>} use in a process of its own
 */
async function withPlayer(use) {
  const player = startChild(new URL('../players/outbound.js', import.meta.url), ['--expose-gc'])
  try {
    return await use(player)
  } finally {
    await player.end()
  }
}
