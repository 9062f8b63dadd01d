// A client that calls ten times as often as its limit of 1,000 allows.
import { setTimeout } from 'node:timers/promises'
import { contestants } from '../contestants/redis.js'
import { ending } from '../lib/ending.js'
import { decide, flush, joinAll } from '../lib/players.js'
import { startRedis } from '../lib/redis.js'
import { median, ratio, spread } from '../lib/stats.js'
import { takeTurns } from '../lib/turns.js'
import { barPlot } from '../report/plot.js'
import { figure, withSpread } from '../report/text.js'

const RULE = { limit: 1000, windowMs: 3_600_000 }
const CACHED = 'sluice, exact log'
const UNCACHED = 'sluice, exact log, deny cache off'
const SORTED_SET = 'async-ratelimiter, koa-ratelimit'
const ROLLING = 'rolling-rate-limiter'

/** @type {import('../run.js').Measure} */
export const measure = ({ rounds, size }) =>
  ending(async (keep) => {
    const server = keep(await startRedis())
    const { joined, missing } = await joinAll(keep, [CACHED, UNCACHED, SORTED_SET, ROLLING], server, RULE)
    const isCacheThere = joined.some(({ label }) => label === UNCACHED)
    const turns = await takeTurns(joined, rounds(5), async (player) => {
      await flush([server])
      // Its deny cache does not know of the flush, and would repeat refusals of its last turn for another second.
      if (player.label === CACHED) await setTimeout(1001)
      const isRolling = player.label === ROLLING
      // This contestant writes refusals too, and reads everything back, so a tenth of the load is enough.
      return decide([player], { count: size(isRolling ? 1500 : 10_000, 1500), inFlight: 100, keys: 1 })
    })
    const byName = new Map([...turns].map(([{ label }, figures]) => [label, figures]))
    const peer = byName.get(SORTED_SET)?.redisUs ?? []
    const plain = byName.get(CACHED)?.redisUs ?? []
    const other = byName.get(ROLLING)?.redisUs ?? []
    const against = (/** @type {number[]} */ ours) => ({
      ...ratio(peer, ours),
      note: `${SORTED_SET}; ${ROLLING}: ${withSpread(ratio(other, ours), '×')}`,
    })
    const without = isCacheThere ? byName.get(UNCACHED)?.redisUs : plain
    return {
      title: 'A client hammering at ten times its limit',
      text: [
        'One client, a limit of 1,000 per hour, 10,000 decisions, 100 in flight: the first 1,000 are admitted, the others ' +
          'refused. Whatever a cache knows, those 1,000 and the refusals that are on their way by then have to reach Redis; ' +
          'there those of one batch are decided at once, as they ask for the same. ' +
          'rolling-rate-limiter is stopped after 1,500: it writes down refusals too and reads everything back.',
      ],
      tables: [
        {
          caption: 'µs per decision',
          head: [
            '',
            'Redis CPU',
            'commands',
            'Node CPU',
            'decisions per Redis call',
            'sorted set against this, Redis CPU',
          ],
          rows: [...byName].map(([name, { redisUs, commandUs, nodeUs, calls }]) => [
            name,
            withSpread(spread(redisUs)),
            withSpread(spread(commandUs)),
            withSpread(spread(nodeUs)),
            figure(1 / median(calls)),
            withSpread(ratio(peer, redisUs), '×'),
          ]),
        },
      ],
      plots: {
        flood: barPlot(
          'Redis CPU per decision, µs, a client hammering at ten times its limit',
          [...byName]
            .filter(([name]) => name !== ROLLING)
            .map(([name, { redisUs }]) => ({ name, value: median(redisUs), side: contestants[name]?.side ?? 'peer' })),
        ),
      },
      setups: Object.fromEntries([...byName.keys()].map((name) => [name, contestants[name]?.setup ?? ''])),
      skipped: missing,
      found: {
        ...(isCacheThere ? { 'flood-cached': against(plain) } : {}),
        'flood-uncached': against(without ?? []),
      },
      raw: Object.fromEntries(byName),
    }
  })
