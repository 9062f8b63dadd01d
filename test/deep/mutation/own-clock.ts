import { setTimeout as sleep } from 'node:timers/promises'
import type { Check } from './check.js'
import type { MutatedRedis } from './mutated-redis.js'

/** The time that scripts use when they are given none, exact to the ms. */
async function byItsOwnClock(redis: MutatedRedis): Promise<string | undefined> {
  await redis.call('FLUSHALL')
  const now = async () => {
    const [seconds, micros] = (await redis.call('TIME')) as [string, string]
    return Number(seconds) * 1000 + Number(micros) / 1000
  }
  const wrong: string[] = []
  const isNow = async (what: string, read: () => Promise<unknown>) => {
    const before = Math.floor(await now())
    const used = Number(await read())
    if (!(used >= before && used <= Math.ceil(await now()))) wrong.push(`${what}: ${used} is not now, ${before}`)
  }
  const first = async (name: string, keys: string[], args: (string | number)[]) =>
    ((await redis.runNamed(name, keys, ['', ...args])) as string[])[0]
  // At several moments of a second, as each shows other digits.
  for (let n = 0; n < 3; n++) {
    await isNow('a block', async () => Number(await first('block', ['{s}:b'], [60_000, 'why'])) - 60_000)
    await isNow('a strike', () =>
      first('strike', ['{s}:strikes', '{s}:c'], [1, 0, 'why', 1, 9, 60_000, 90_000, 60_000]),
    )
    await isNow('a change of the index', () => first('index', SHARD, ['i', 0, 'f', 'BLOCK', 60_000, 0, 0, '']))
    await isNow(
      'the entry of a change',
      async () => (await first('change', ['{s}:log'], [60_000, 10, 'x']))?.split(':')[1],
    )
    await isNow('a page of the index', () => first('index-page', SHARD, [0, 1, '']))
    await isNow('the epoch of the index', async () => {
      await first('index-clear', SHARD, ['i', 1])
      return String(await redis.call('HGET', SHARD[0] as string, '')).split(' ')[2]
    })
    await sleep(7)
  }
  return wrong[0]
}

const SHARD = ['{s}:entries', '{s}:changes']

export const ownClockChecks: readonly Check[] = [
  { name: 'own clock: scripts that are given no time', run: ({ redis }) => byItsOwnClock(redis) },
]
