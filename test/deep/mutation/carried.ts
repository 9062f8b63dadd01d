import type { Limiter, Verdict } from '@sluice/core'
import { CARRIED, carried } from '../../contract/carried.js'
import { randomFrom } from '../../contract/policies.js'
import type { Check } from './check.js'
import { replay } from './replay.js'
import { Recorder, type Scenario } from './scenario.js'

const AMOUNTS = [12, 4, 40, 300, 0]
const WALKS_EACH = 6
const STEPS = 40

/** Versions of one limit decide alternately on one state. `scale` multiplies all amounts and costs. */
async function walked(name: string, seed: number, scale = 1): Promise<Scenario> {
  const limitsOf = CARRIED[name] as NonNullable<(typeof CARRIED)[string]>
  const recorder = new Recorder(
    AMOUNTS.map((amount) => ({ name: 'carried', limits: carried(limitsOf(scale * amount)) })),
  )
  const counts = name !== 'requests in flight'
  const below = randomFrom(seed)
  const upTo = (most: number) => below(most + 1)
  const charged: { readonly result: number; readonly version: number }[] = []
  for (let step = 0; step < STEPS; step++) {
    const gap = below(100)
    recorder.clock.now += gap < 40 ? 0 : gap < 90 ? upTo(2500) : gap < 95 ? upTo(15_000) : -upTo(40_000)
    recorder.step()
    const version = upTo(AMOUNTS.length - 1)
    const cost = scale * (below(100) < 70 ? upTo(4) : upTo(40))
    const earlier = charged[upTo(charged.length)]
    const what = below(100)
    if (what < 8 && earlier && counts) {
      const actual = { requests: (recorder.results[earlier.result] as Verdict).cost + scale * upTo(6) }
      await recorder.ask((_, verdict) => (verdict as Verdict).settle(actual), earlier.result)
    } else if (what < 15 && earlier) {
      const { version: of, result } = earlier
      await recorder.ask((limiters, verdict) => (limiters[of] as Limiter).refund('k', verdict as Verdict), result)
    } else if (what < 25) await recorder.ask((limiters) => (limiters[version] as Limiter).peek('k', { cost }))
    else {
      const requests = what > 90 ? 3 : 1
      for (let n = 0; n < requests; n++) {
        const result = recorder.results.length
        const verdict = await recorder.ask((limiters) => (limiters[version] as Limiter).consume('k', { cost }))
        if ((verdict as Verdict).allowed) charged.push({ result, version })
      }
    }
  }
  return recorder.scenario(`carried: ${name}, walk ${seed}, times ${scale}`)
}

/** Checks of states that several versions of limits share. */
export async function carriedChecks(): Promise<Check[]> {
  const walks = Object.keys(CARRIED).flatMap((name) =>
    Array.from({ length: WALKS_EACH }, (_, i) => walked(name, i + 1)),
  )
  // Counters that need more than 4 bytes.
  walks.push(walked('a strict window', 1, 1_000_000_000), walked('a weighted window', 2, 1_000_000_000))
  return (await Promise.all(walks)).map((scenario) => ({
    name: scenario.name,
    run: (venue) => replay(scenario, venue),
  }))
}
