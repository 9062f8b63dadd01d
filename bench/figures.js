// `node bench/figures.js`: the CPU time of a process that reports its figures to Redis, in ms per second at 10,000 decisions a second,
// and the commands that Redis gets for it. Needs a build. A round is a fresh process without reports, and one with them.
// Options: --rounds <n>, --rate <decisions a second>, --seconds <n>.
import { parseArgs } from 'node:util'
import { whenStarted } from '../scripts/lib/run.js'
import { startChild } from './lib/child.js'
import { ending } from './lib/ending.js'
import { startRedis } from './lib/redis.js'
import { median, medianInterval } from './lib/stats.js'

await whenStarted(import.meta.url, async () => {
  const { values } = parseArgs({
    options: {
      rounds: { type: 'string', default: '15' },
      rate: { type: 'string', default: '10000' },
      seconds: { type: 'string', default: '8' },
    },
  })
  const [rounds, rate, seconds] = [Number(values.rounds), Number(values.rate), Number(values.seconds)]
  await ending(async (keep) => {
    const redis = keep(await startRedis())
    /** @param {boolean} report */
    const measure = (report) =>
      ending(async (keepChild) => {
        const child = keepChild(startChild(new URL('./players/figures.js', import.meta.url)))
        const before = await redis.cost()
        const { cpuMs, rate: reached } = await child.call('cost', { port: redis.port, report, rate, seconds })
        const after = await redis.cost()
        return { cpuMs, reached, calls: after.calls - before.calls }
      })
    /** @type {{ cpuMs: number[], calls: number[], reached: number[] }} */
    const more = { cpuMs: [], calls: [], reached: [] }
    const alone = []
    for (let round = 0; round < rounds; round++) {
      // The other one goes first each time.
      const order = round % 2 === 0 ? [false, true] : [true, false]
      const both = new Map()
      for (const report of order) both.set(report, await measure(report))
      const [without, withReports] = [both.get(false), both.get(true)]
      alone.push(without.cpuMs)
      more.cpuMs.push(withReports.cpuMs - without.cpuMs)
      more.reached.push(withReports.reached)
      more.calls.push(withReports.calls - without.calls)
    }
    const { low, high } = medianInterval(more.cpuMs)
    console.log(`decisions a second: ${median(more.reached).toFixed(0)}, ${rounds} rounds of ${seconds} s`)
    console.log(`CPU without reports: ${median(alone).toFixed(1)} ms a second`)
    console.log(
      `more with reports: ${median(more.cpuMs).toFixed(2)} ms a second (95 %: ${low.toFixed(2)} to ${high.toFixed(2)})`,
    )
    console.log(`more commands to Redis in a whole run: ${median(more.calls).toFixed(0)}`)
    console.log(`bytes of a minute and an hour: ${await bytesOf(redis.admin)}`)
  })
})

/** @param {import('ioredis').Redis} admin */
async function bytesOf(admin) {
  const keys = await admin.keys('*{figures}:[mh]:*')
  const sizes = await Promise.all(keys.map((key) => admin.call('MEMORY', 'USAGE', key)))
  const largest = (/** @type {string} */ step) =>
    Math.max(0, ...sizes.filter((_, i) => keys[i]?.includes(`:${step}:`)).map(Number))
  return `${largest('m')} and ${largest('h')}`
}
