import type { KeyedScripts } from '@sluice/core/internal'
import {
  ANSWERED,
  age,
  emptyState,
  FAILED,
  look,
  type QuotaState,
  type QuotaTaken,
  type ToldLimit,
  take,
  told,
  UNSENT,
} from '../../packages/fetch/src/learned/kernel.js'
import { SharedQuota } from '../../packages/fetch/src/learned/shared-quota.js'
import { randomFrom } from '../contract/policies.js'

export interface QuotaStage {
  readonly scripts: KeyedScripts
  /** The clock of the store that runs the scripts. */
  readonly clock: { now: number }
  /** The value of a key whose name ends so, and its life in ms. */
  read(end: string): Promise<{ readonly value: string | null; readonly lifeMs: number }>
}

/** The life of a state after its last limit, and of keys of a store with a clock of its own. */
const LIFE_MS = 60_000 + 3_600_000
const PASSED_MS = 5000

/** The text of a state, as lua/quota.lua keeps it. */
function textOf({ isKnown, aloneUntil, slot, newer, older, taken, limits }: QuotaState): string {
  return [
    ['q1', Number(isKnown), aloneUntil, slot, newer, older, taken].join(' '),
    ...limits.map(({ limit, remaining, resetAt, resetFrom, perUnitUs, toldAt, isBucket, name }) =>
      [limit, remaining, resetAt, resetFrom, perUnitUs, toldAt, Number(isBucket), encodeURIComponent(name)].join(' '),
    ),
  ].join(' ')
}

/** Random requests, answers and times, in the kernel and on Redis, step by step. Returns the first difference. */
export async function differenceIn(stage: QuotaStage, seed: number, steps: number): Promise<string | undefined> {
  const random = randomFrom(seed)
  const policy = `learned-${seed}`
  const quota = new SharedQuota(stage.scripts, policy, 'key=k')
  const state = emptyState()
  const open: QuotaTaken[] = []
  stage.clock.now = 1_760_000_000_000 + random(100_000)
  for (let step = 0; step < steps; step++) {
    stage.clock.now +=
      random(12) === 0 ? 20_000 + random(50_000) : random(10) === 0 ? -random(50) : random(3) * random(200)
    const { now } = stage.clock
    age(state, now)
    let expected = ''
    let found = ''
    if (random(2) === 0) {
      const isEven = random(2) === 0
      const { waitMs, isFirst, intervalUs } = look(state, now, isEven)
      const taken = waitMs > 0 ? undefined : take(state, now, isFirst)
      expected = JSON.stringify([waitMs, isFirst, intervalUs, taken, state.taken, state.limits.length])
      const shared = await quota.take(isEven)
      found = JSON.stringify([
        shared.waitMs,
        shared.isFirst,
        shared.intervalUs,
        shared.taken,
        shared.takenByAll,
        shared.limits,
      ])
      if (taken) open.push(taken)
      // A look that has to wait writes nothing.
      if (!taken && found === expected) continue
    } else {
      const [taken = { slot: 0, at: 0 }] = open.splice(random(Math.max(1, open.length)), 1)
      const outcome = ([ANSWERED, ANSWERED, ANSWERED, FAILED, UNSENT] as const)[random(5)] as 0 | 1 | 2
      const limits = outcome === ANSWERED ? limitsOf(random, state, now, taken.at) : []
      told(state, now, taken, outcome, limits)
      await quota.told(taken, outcome, limits)
    }
    const { value, lifeMs } = await stage.read(`:${policy}:quota`)
    expected += textOf(state)
    found += value
    if (found !== expected) return `step ${step}: ${found} instead of ${expected}`
    const life = LIFE_MS + state.limits.reduce((longest, { resetAt }) => Math.max(longest, resetAt - now), 0)
    if (lifeMs > life || lifeMs < life - PASSED_MS) return `step ${step}: a life of ${lifeMs} ms instead of ${life}`
  }
  return undefined
}

function limitsOf(random: (below: number) => number, state: QuotaState, now: number, takenAt: number): ToldLimit[] {
  return ['a', 'b c'].slice(0, random(3)).map((name) => {
    const limit = [0, 1, 5, 10, 20, 1000][random(6)] as number
    // Also on either side of what is the same window.
    const known = state.limits.find((each) => each.name === name)
    const [earliest, latest] = known ? [known.resetFrom - now, known.resetAt - takenAt + 1000] : [0, 0]
    const nearKnown = Math.max(0, random(2) === 0 ? earliest : latest)
    const resetAfterMs = [0, random(400), 1000 * random(6), random(100_000), nearKnown, nearKnown][random(6)] as number
    return { name, limit, remaining: random(limit + 2), resetAfterMs, isBucket: random(2) === 0 }
  })
}
