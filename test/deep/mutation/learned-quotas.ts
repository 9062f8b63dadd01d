import { type KeyedScripts, keyedScriptsOf } from '@sluice/core/internal'
import { differenceIn } from '../../fetch/quota-steps.js'
import { type Check, different } from './check.js'

/** Learned quotas, step by step beside the kernel. */
export const learnedQuotaChecks: readonly Check[] = [
  ...Array.from(
    { length: 4 },
    (_, seed): Check => ({
      name: `learned quotas: random requests and answers, ${seed}`,
      async run({ redis, store, clock }) {
        await redis.call('FLUSHALL')
        const read = async (end: string) => {
          const [key = ''] = (await redis.call('KEYS', `*${end}`)) as string[]
          return {
            value: (await redis.call('GET', key)) as string | null,
            lifeMs: Number(await redis.call('PTTL', key)),
          }
        }
        return differenceIn({ scripts: keyedScriptsOf(store) as KeyedScripts, clock, read }, seed, 300)
      },
    }),
  ),
  {
    name: 'learned quotas: the clock of Redis',
    async run({ redis }) {
      await redis.call('FLUSHALL')
      const run = () => redis.runNamed('quota', ['{a}:quota'], ['', 'take', '0'])
      const [at, slot] = ((await run()) as unknown[]).map(Number) as [number, number]
      const [seconds, micros] = ((await redis.call('TIME')) as string[]).map(Number) as [number, number]
      const behindMs = seconds * 1000 + Math.floor(micros / 1000) - at
      const life = Number(await redis.call('PTTL', '{a}:quota'))
      return different(
        'its time, its slot and the life of its state',
        [behindMs >= 0 && behindMs < 5000, slot, life > 55_000 && life <= 60_000],
        [true, Math.floor(at / 30_000), true],
      )
    },
  },
]
