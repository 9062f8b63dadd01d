// The memory of a log of 60 entries in Redis, and of a key and an entry.
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { decide, flush, joinAll } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { barPlot } from '../report/plot.js'
import { figure } from '../report/text.js'

const ENTRIES = 60
const OURS = 'sluice, exact log'
/** The number of logs per written one, of which the others are copies, for contestants that write slowly. */
const COPIES = new Map([
  ['async-ratelimiter, koa-ratelimit', 10],
  ['rolling-rate-limiter', 100],
])
const SORTED_SETS = [...COPIES.keys()]
const COUNTERS = [
  'sluice, fixed window',
  'sluice, gcra',
  'rate-limit-redis',
  'rate-limiter-flexible',
  '@fastify/rate-limit',
]

/** @type {import('../run.js').Measure} */
export const measure = ({ size }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    const names = [OURS, ...SORTED_SETS, ...COUNTERS]
    const { joined } = await joinAll(keep, names, server, { limit: 100, windowMs: 3_600_000 })
    const logs = size(100_000, 40)
    /** @type {Record<string, { oneEntry: number, full: number }>} */
    const bytes = {}
    for (const player of joined) {
      await flush([server])
      const copies = COPIES.get(player.label) ?? 1
      const isLog = player.label === OURS || copies > 1
      const written = Math.ceil(logs / copies)
      const empty = await server.usedMemory()
      const perKey = async (/** @type {number} */ times) => {
        await decide([player], { count: written * times, inFlight: 64, keys: written })
        if (copies > 1) await copyEach(server, copies)
        const used = (await server.usedMemory()) - empty
        if (copies > 1) await dropCopies(server)
        return used / (written * copies)
      }
      const oneEntry = await perKey(1)
      bytes[player.label] = { oneEntry, full: isLog ? await perKey(ENTRIES - 1) : oneEntry }
    }
    const megabytes = (/** @type {string} */ name) => ((bytes[name]?.full ?? 0) * logs) / 1e6
    const least = Math.min(...SORTED_SETS.map(megabytes))
    const exact = (/** @type {number} */ value) => ({ median: value, low: value, high: value })
    return {
      title: 'Memory in Redis',
      text: [
        `${logs.toLocaleString('en')} keys, the difference in used_memory. Every log of ours was written entry by entry, as in ` +
          `life, so that what Redis keeps in reserve shows. Redis keeps sorted sets of this length without reserve. One ` +
          `in ten of them was written, one in a hundred for rolling-rate-limiter, and copied to as many other keys.`,
      ],
      tables: [
        {
          caption: `bytes per key, and for logs of ${ENTRIES} entries`,
          head: ['', 'per key with one entry', `per key with ${ENTRIES}`, 'per further entry', 'all, MB'],
          rows: joined.map(({ label }) => {
            const { oneEntry = 0, full = 0 } = bytes[label] ?? {}
            const isLog = full !== oneEntry
            return [
              label,
              figure(oneEntry),
              isLog ? figure(full) : '–',
              isLog ? figure((full - oneEntry) / (ENTRIES - 1)) : '–',
              figure(megabytes(label)),
            ]
          }),
        },
      ],
      plots: {
        'redis-memory': barPlot(
          `Bytes in Redis per log of ${ENTRIES} entries`,
          [OURS, ...SORTED_SETS].map((name) => ({
            name,
            value: bytes[name]?.full ?? 0,
            side: contestants[name]?.side ?? 'peer',
          })),
        ),
      },
      setups: Object.fromEntries(names.map((name) => [name, contestants[name]?.setup ?? ''])),
      found: {
        'redis-memory': exact(megabytes(OURS)),
        'redis-memory-peer': { ...exact(least / megabytes(OURS)), note: 'against the leaner of the two' },
      },
      raw: bytes,
    }
  })

/**
 * Copies each key to names of about its length, up to `copies` copies.
 *
 * @param {import('../lib/redis.js').RedisServer} server
 * @param {number} copies
 */
async function copyEach({ admin }, copies) {
  const copy = `for _, key in ipairs(redis.call('KEYS', '*')) do
    for n = 1, ${copies - 1} do redis.call('COPY', key, key .. '#' .. n) end
  end`
  await admin.eval(copy, 0)
}

/** @param {import('../lib/redis.js').RedisServer} server */
async function dropCopies({ admin }) {
  await admin.eval(`for _, key in ipairs(redis.call('KEYS', '*#*')) do redis.call('DEL', key) end`, 0)
}
