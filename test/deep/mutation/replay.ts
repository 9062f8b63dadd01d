import type { Store, Verdict } from '@sluice/core'
import type { Clock } from '../../contract/store-under-test.js'
import { Lives } from './lives.js'
import type { MutatedRedis } from './mutated-redis.js'
import { limitersOn, type Scenario, textOf } from './scenario.js'

/** The stores and the clock for a replay. */
export interface Stage {
  readonly redis: MutatedRedis
  /** A store on `redis` that reads `clock`. */
  readonly store: Store
  /** A store as in another process, whose blocks `store` knows only by the scripts. */
  readonly elsewhere: Store
  readonly clock: Clock
}

/** Repeats the calls on Redis; resolves to the first difference, if any. */
export async function replay(
  scenario: Scenario,
  { redis, store, elsewhere, clock }: Stage,
): Promise<string | undefined> {
  const { policies, steps, results: expected, forgets, owes } = scenario
  const limiters = limitersOn(store, policies)
  const others = limitersOn(elsewhere, policies)
  const lives = forgets ? new Lives(redis, clock.read, policies, owes) : undefined
  const results: Promise<unknown>[] = []
  let different: string | undefined
  await redis.call('FLUSHALL')
  for (const { at, calls } of steps) {
    if (different !== undefined) break
    clock.now = at
    lives?.forget()
    const verdicts = await Promise.all(calls.map(({ of }) => (of === undefined ? undefined : results[of])))
    for (const [i, { ask }] of calls.entries()) {
      const n = results.length
      const check = (text: string) => {
        if (text !== expected[n]) different ??= `at ${at}: ${text} instead of ${expected[n]}`
      }
      const result = ask(limiters, verdicts[i] as Verdict | undefined, others)
      result.then(
        (value) => check(textOf(value)),
        (error: Error) => check(error.message),
      )
      // Later calls need not wait for it, and must not see its failure.
      results.push(result.catch(() => undefined))
    }
    // A batch that meets a block is sent twice, so the clock must stand still until its reply.
    await Promise.all(results.slice(-calls.length))
    different ??= await lives?.finish()
  }
  await Promise.all(results)
  different ??= await lives?.finish()
  lives?.stop()
  return different
}
