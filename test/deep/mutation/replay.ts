import type { Store, Verdict } from '@sluice/core'
import type { Clock } from '../../contract/store-under-test.js'
import { Lives } from './lives.js'
import type { MutatedRedis } from './mutated-redis.js'
import { limitersOn, type Scenario, said } from './scenario.js'

/** What a scenario is replayed on. */
export interface Stage {
  readonly redis: MutatedRedis
  /** On `redis`, by `clock`. */
  readonly store: Store
  /** As that of another process. What it blocks, `store` knows of by the scripts alone. */
  readonly elsewhere: Store
  readonly clock: Clock
}

/** Asks Redis what memory was asked; the first thing that it says or does differently, if any. */
export async function replay(
  scenario: Scenario,
  { redis, store, elsewhere, clock }: Stage,
): Promise<string | undefined> {
  const { policies, steps, answers: expected, forgets } = scenario
  const limiters = limitersOn(store, policies)
  const others = limitersOn(elsewhere, policies)
  const lives = forgets ? new Lives(redis, clock.read, policies) : undefined
  const answers: Promise<unknown>[] = []
  let different: string | undefined
  await redis.call('FLUSHALL')
  for (const { at, asks } of steps) {
    if (different !== undefined) break
    clock.now = at
    lives?.forget()
    const verdicts = await Promise.all(asks.map(({ of }) => (of === undefined ? undefined : answers[of])))
    for (const [i, { ask }] of asks.entries()) {
      const n = answers.length
      const check = (text: string) => {
        if (text !== expected[n]) different ??= `at ${at}: ${text} instead of ${expected[n]}`
      }
      const answer = ask(limiters, verdicts[i] as Verdict | undefined, others)
      answer.then(
        (said_) => check(said(said_)),
        (error: Error) => check(error.message),
      )
      // What comes after need not wait for it, but must not see it fail, either.
      answers.push(answer.catch(() => undefined))
    }
    // A batch that comes upon a block is sent twice, so the clock must stand still until it is answered.
    await Promise.all(answers.slice(-asks.length))
    different ??= await lives?.finish()
  }
  await Promise.all(answers)
  different ??= await lives?.finish()
  lives?.stop()
  return different
}
