import { type KeyedScripts, keyedScriptsOf } from '@sluice/core/internal'
import { differenceIn } from '../../fetch/quota-steps.js'
import { type Check, different, PASSED_MS } from './check.js'

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
      const timeOf = async () => {
        const [seconds, micros] = ((await redis.call('TIME')) as string[]).map(Number) as [number, number]
        return seconds * 1000 + Math.floor(micros / 1000)
      }
      for (let i = 0; i < 5; i++) {
        const before = await timeOf()
        const reply = (await redis.runNamed('quota', ['{a}:quota'], ['', 'take', '0'])) as unknown as unknown[]
        const [at, slot] = reply.map(Number) as [number, number]
        const isNow = before <= at && at <= (await timeOf())
        const failure = different('its time and its slot', [isNow, slot], [true, Math.floor(at / 30_000)])
        if (failure) return failure
      }
      const life = Number(await redis.call('PTTL', '{a}:quota'))
      return different('the life of its state', life > 60_000 - PASSED_MS && life <= 60_000, true)
    },
  },
  {
    name: 'learned quotas: values of other programs',
    async run({ redis }) {
      for (const value of ['1', 'q1', 'q1 1 2 3', 'q1 1 0 0 0 0 0 9', 'q2 1 0 0 0 0 7', '1 2 3 4 5 6 7']) {
        await redis.call('SET', '{a}:foreign', value)
        const reply = (await redis.runNamed('quota', ['{a}:foreign'], ['', 'take', '0'])) as unknown as unknown[]
        const failure = different(`after ${value}`, reply.slice(2).map(Number), [0, 1, 0, 1, 0])
        if (failure) return failure
      }
      await redis.call('DEL', '{a}:foreign')
      await redis.call('SADD', '{a}:foreign', 'a')
      const reply = (await redis.runNamed('quota', ['{a}:foreign'], ['', 'take', '0'])) as unknown as unknown[]
      return different('after a set', reply.slice(2).map(Number), [0, 1, 0, 1, 0])
    },
  },
]
