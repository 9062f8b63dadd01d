// The cost of charges that are kept under an id: of a decision, and in the memory of Redis.
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { decide, flush, joinAll } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { figure, withSpread } from '../report/text.js'

const PLAIN = 'sluice, fixed window'
const KEPT = 'sluice, fixed window, kept charges'
const CLIENTS = 100

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    const { joined, missing } = await joinAll(keep, [PLAIN, KEPT], server, { limit: 10_000_000, windowMs: 3_600_000 })
    const turns = await takeTurns(joined, rounds(7), async (player) => {
      await flush([server])
      return decide([player], { count: size(20_000, 500), inFlight: 100, keys: CLIENTS, prepared: true })
    })
    const byName = new Map([...turns].map(([{ label }, figures]) => [label, figures]))
    const [plain, kept] = [byName.get(PLAIN), byName.get(KEPT)]
    const ids = size(1_000_000, 1000)
    const bytes = await bytesPerId(
      server,
      joined.find(({ label }) => label === KEPT),
      ids,
    )
    const costs = kept && plain && { node: ratio(kept.nodeUs, plain.nodeUs), redis: ratio(kept.redisUs, plain.redisUs) }
    return {
      title: 'Kept charges',
      text: [
        'A fixed window with a limit that is out of reach, a hundred keys in turn, 100 in flight, with and without ' +
          `\`charges\`. ${ids.toLocaleString('en')} ids of ${CLIENTS} clients then took ${figure(bytes)} bytes each in Redis.` +
          (costs
            ? ` A decision takes ${withSpread(costs.node)}× of the CPU of Node and ${withSpread(costs.redis)}× of that of Redis.`
            : ''),
      ],
      tables: [
        {
          caption: 'with and without kept charges',
          head: ['', 'decisions/s', 'Node CPU µs', 'Redis CPU µs'],
          rows: [...byName].map(([name, { perSecond, nodeUs, redisUs }]) => [
            name,
            withSpread(spread(perSecond)),
            withSpread(spread(nodeUs)),
            withSpread(spread(redisUs)),
          ]),
        },
      ],
      plots: {},
      setups: Object.fromEntries([...byName.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
      skipped: missing,
      found: {},
      raw: { ...Object.fromEntries(byName), bytesPerId: bytes },
    }
  })

/**
 * The bytes of an id in Redis, without those of its clients' counts.
 *
 * @param {import('../lib/redis.js').RedisServer} server
 * @param {Parameters<typeof decide>[0][number] | undefined} player
 * @param {number} ids
 */
async function bytesPerId(server, player, ids) {
  if (!player) return 0
  await flush([server])
  await decide([player], { count: CLIENTS, inFlight: 100, keys: CLIENTS })
  const before = await server.usedMemory()
  await decide([player], { count: ids, inFlight: 640, keys: CLIENTS })
  return ((await server.usedMemory()) - before) / ids
}
