import { fixedWindow, gcra, type Limit, memoryStore, redisStore, type Units, type Verdict } from '@sluice/core'
import { expect, test } from 'vitest'
import type { ReadablePlan } from '../../../packages/core/src/policy/plan.js'
import { ofEachUnit } from '../../contract/create-limiter.js'
import { POLICIES, randomFrom, waysToDeny } from '../../contract/policies.js'
import { Clock } from '../../contract/store-under-test.js'
import { byEffort } from '../../support/effort.js'
import { decisionOf, makeLimiter } from '../../support/inside.js'
import { insist } from '../../support/outages.js'
import { redisForTests } from '../../support/redis-for-tests.js'

/** Steps in all, spread evenly over the policies below; more for a longer run. */
const STEPS = Number(process.env.SLUICE_STEPS ?? byEffort({ usual: 2_000, full: 250_000 }))
const SEED = Number(process.env.SLUICE_SEED ?? Math.floor(Math.random() * 2 ** 32))

const { client } = await redisForTests()

const ALL = {
  ...POLICIES,
  responses: [
    fixedWindow<string>({ limit: 40, window: '10s', unit: 'response-bytes', anchor: 'first-request' }),
    gcra<string>({ limit: 30, window: '10s', unit: 'response-bytes' }),
    gcra<string>({ limit: 12, window: '10s' }),
  ],
}

/** Units in number, or by name with some that are not named. */
function costIn(limits: readonly Limit<string>[], random: (below: number) => number): number | Units {
  const all = ofEachUnit(limits, random(4))
  if (typeof all === 'number' || random(4) === 0) return typeof all === 'number' ? all : random(4)
  return Object.fromEntries(Object.entries(all).flatMap(([unit]) => (random(4) === 0 ? [] : [[unit, random(4)]])))
}

/** Some of the units that may be settled. */
function unitsIn(limits: readonly Limit<string>[], amount: () => number): Units {
  const units = limits.map(({ unit }) => unit).filter((unit) => !/bytes|concurrent/.test(unit))
  return Object.fromEntries(units.filter(() => amount() % 3 > 0).map((unit) => [unit, amount()]))
}

interface Admitted {
  readonly key: string
  readonly inMemory: Verdict
  readonly inRedis: Verdict
}

type Made = ReturnType<typeof makeLimiter>

/** Charges bytes of a response that are sent. */
function chargeResponse(engine: Made['engine'], verdict: Verdict, bytes: number) {
  const decision = decisionOf(verdict)
  const { units } = decision.request.plan as ReadablePlan
  return engine.chargeMore(
    decision,
    units.map((unit) => (unit === 'response-bytes' ? bytes : 0)),
  )
}

for (const onDeny of ['none', 'charge'] as const) {
  for (const stepsBack of [false, true]) {
    const clockTitle = stepsBack ? 'a clock that also steps back' : 'a clock that goes forward'
    for (const [name, limits] of Object.entries(ALL)) {
      if (!waysToDeny(limits).includes(onDeny)) continue
      test(`${name}: memory and Redis agree at every step, refusals charged: ${onDeny}, by ${clockTitle}`, async () => {
        const clock = new Clock()
        const random = randomFrom(SEED)
        const stores = [
          memoryStore({ clock: clock.read }),
          // A repeated refusal of a larger cost in units may name another wait.
          insist(redisStore(client, { clock: clock.read, timeout: 5000, denyCache: name !== 'units' })),
        ]
        const policy = `${name}-${onDeny}-${stepsBack}`
        const [memory, redis] = stores.map((store) => makeLimiter({ name: policy, store, limits, onDeny })) as [
          Made,
          Made,
        ]
        const both = async <T>(ask: (made: Made, verdictOf: (pair: Admitted) => Verdict) => T | Promise<T>) => {
          const inMemory = await ask(memory, (pair) => pair.inMemory)
          const inRedis = await ask(redis, (pair) => pair.inRedis)
          return { inMemory, inRedis }
        }
        const admitted: Admitted[] = []
        const steps = Math.ceil(STEPS / (4 * Object.keys(ALL).length))

        for (let step = 0; step < steps; step++) {
          if (random(2) === 0) clock.now += random(random(10) === 0 ? 12_000 : 900)
          if (stepsBack && random(33) === 0) clock.now -= random(random(3) === 0 ? 50_000 : 3_000)
          const pair = admitted[random(admitted.length + 1)]
          const what = (step * 7919 + SEED) % 100
          // Bytes of a response are charged after its request, and more than once.
          const ofResponse = name === 'responses' && what >= 35 && what < 55 ? pair : undefined
          const key = ofResponse?.key ?? `key-${random(3)}`
          const bytes = random(3) * random(9)
          const options = { cost: costIn(limits, random), bytes, responseBytes: bytes, priority: random(3) }
          const sent = 1 + random(30)
          const actual = unitsIn(limits, () => random(random(4) === 0 ? 300 : 12))
          const results = await both<unknown>(({ limiter, engine }, verdictOf) => {
            if (pair && what < 15) return limiter.refund(pair.key, verdictOf(pair))
            if (pair && what < 20) return limiter.release(verdictOf(pair))
            if (pair && what < 23) return limiter.renew(verdictOf(pair))
            if (pair && what >= 56 && what < 66) return verdictOf(pair).settle(actual)
            if (what < 24) return limiter.reset(key)
            if (what < 26) return limiter.block(key, { for: '2s', reason: `step ${step}` })
            if (what < 27) return limiter.unblock(key)
            if (what < 35) return limiter.peek(key, options)
            if (ofResponse) return chargeResponse(engine, verdictOf(ofResponse), sent)
            return limiter.consume(key, options)
          })
          const context = `seed ${SEED}, step ${step}, at ${clock.now}`
          expect(JSON.stringify(results.inRedis), context).toBe(JSON.stringify(results.inMemory))
          const { inMemory, inRedis } = results as { inMemory: Verdict; inRedis: Verdict }
          if (inMemory?.allowed) admitted.push({ key, inMemory, inRedis })
        }
        for (const store of stores) await store.close()
      })
    }
  }
}
