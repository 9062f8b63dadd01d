import {
  concurrency,
  fixedWindow,
  gcra,
  keyed,
  type Limit,
  perHour,
  perMinute,
  perSecond,
  slidingLog,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import fc from 'fast-check'
import { limitOf } from '../../contract/limit-of.js'
import { POLICIES, randomFrom, waysToDeny } from '../../contract/policies.js'
import { ALGORITHMS, anySpec, play, specAndTrace, traceFor } from '../../contract/traces.js'
import { settleBytes } from '../../support/inside.js'
import { type Call, type Policy, Recorder, type Scenario } from './scenario.js'

const SEED = 20_260_701

/** Policies beside those of the long walks. */
const MORE: Record<string, readonly Limit<string>[]> = {
  long: [slidingLog({ limit: 90, window: '10s' })],
  nested: [slidingLog({ limit: 60, window: '1s' }), slidingLog({ limit: 5, window: '4s' }), perMinute(80)],
  wide: [slidingWindow({ limit: 65_536, window: '12s', segments: 3 })],
  edges: [slidingWindow({ limit: 255, window: '10s', segments: 1, rounding: 'up' })],
  bytes: [slidingWindow({ limit: 256, window: '10s', segments: 2, edge: 'strict' })],
  slow: [gcra({ limit: 3, window: '1h' })],
  steps: [tokenBucket({ capacity: 3, refill: 5, every: '2s', style: 'interval' })],
  halves: [slidingWindow({ limit: 9, window: '10s', segments: 1 })],
  crowd: [concurrency({ limit: 30, ttl: '9s' })],
  five: [
    perSecond(3),
    slidingLog({ limit: 5, window: '2s' }),
    slidingLog({ limit: 8, window: '5s' }),
    perMinute(12),
    perHour(15),
  ],
  months: [slidingLog({ limit: 5, window: '60d' }), slidingLog({ limit: 12, window: '400d' })],
}
const ALL = { ...POLICIES, ...MORE }

interface WalkOptions {
  readonly steps: number
  readonly stepsBack?: boolean
  readonly forgets?: boolean
  /** Whether settlements exceed what was charged. @default true unless it forgets */
  readonly owes?: boolean
  /** The most calls at one instant, in one batch, and the most equal charges in a row. */
  readonly together?: number
  readonly equals?: number
  /** The first instant. */
  readonly start?: number
  /** Whether nothing is refunded, freed or renewed. */
  readonly onlyCharges?: boolean
}

/** An admitted request, and the number of its result. */
interface Admitted {
  readonly limiter: number
  readonly key: string
  readonly cost: number
  readonly bytes: number
  readonly of: number
}

/** A long walk: charges, peeks, refunds, releases, renewals, resets and blocks, at instants of all kinds. */
async function walk(name: string, policies: readonly Policy[], options: WalkOptions, keys: readonly string[]) {
  const { steps, stepsBack = false, forgets = false, together = 1, equals = 1, start, onlyCharges = false } = options
  const { owes = !forgets } = options
  const random = randomFrom(SEED + name.length + 31 * steps)
  const recorder = new Recorder(policies)
  if (start !== undefined) recorder.clock.now = start
  const limits = policies.flatMap(({ limits = [] }) => limits)
  const windows = limits.map(({ window }) => window as number)
  const [shortest, longest] = [Math.min(...windows), Math.max(...windows)]
  // States in memory outlive their end by an hour, and windows of the calendar are far longer than that.
  const farthestBack = limits.some(({ calendar }) => calendar) ? 3_600_000 - 1 : Number.POSITIVE_INFINITY
  const capacities = policies.map(({ limits = [] }) => Math.min(...limits.map(({ limit }) => limit as number)))
  let admitted: Admitted[] = []
  let last: Verdict | undefined

  const gap = () => {
    switch (random(10)) {
      case 0:
        return random(shortest)
      case 1:
        return random(random(4) === 0 ? 2 * longest : shortest * 2)
      case 2:
        return random(Math.ceil(shortest / 5) + 1)
      case 3:
      case 4: {
        const promise = (random(3) === 0 ? last?.resetAfterMs : last?.retryAfterMs) ?? 0
        return Math.max(0, promise - (random(2) + random(2) * random(2)))
      }
      case 5:
        return random(4)
      default:
        return 0
    }
  }
  const back = () => {
    switch (random(5)) {
      case 0:
        return random(4 * longest)
      // The exact distance to the future up to which a state is accepted.
      case 1:
        return longest - 1 + random(3)
      case 2:
        return shortest - 1 + random(3)
      default:
        return random(shortest)
    }
  }
  /** A call of another process, outside of batches. The peek after it finds a block, so its batch is sent twice. */
  const apart = async (ask: Call) => {
    recorder.step()
    await recorder.ask(ask)
    recorder.step()
    await recorder.ask((all) => at(all, 0).peek('carl'))
    recorder.step()
  }
  const ask = async (step: number) => {
    const limiter = random(policies.length)
    const key = keys[random(keys.length)] as string
    const capacity = capacities[limiter] as number
    const cost = random(3) === 0 ? random(capacity + 2) : random(4)
    const bytes = random(3) === 0 ? 0 : random(20)
    const priority = random(3)
    const own = admitted.filter((one) => one.limiter === limiter)
    const one = own[random(own.length + 1)]
    const what = random(100)
    if (one && what < 15)
      return recorder.ask((all, verdict) => at(all, limiter).refund(one.key, verdict as Verdict), one.of)
    if (one && what < 20) return recorder.ask((all, verdict) => at(all, limiter).release(verdict as Verdict), one.of)
    if (one && what < 25) return recorder.ask((all, verdict) => at(all, limiter).renew(verdict as Verdict), one.of)
    if (one && what < 28) {
      const actual = random(one.cost + 1)
      return recorder.ask((all, verdict) => at(all, limiter).settle(verdict as Verdict, actual), one.of)
    }
    if (one && owes && what < (forgets ? 32 : 29)) {
      const more = Object.fromEntries(
        (policies[limiter]?.limits ?? [])
          .map(({ unit }) => unit)
          .filter((unit) => !/bytes|concurrent/.test(unit))
          .map((unit) => [unit, one.cost + random(random(3) === 0 ? 400 : 6)]),
      )
      return recorder.ask((all, verdict) => at(all, limiter).settle(verdict as Verdict, more), one.of)
    }
    if (one && what < 30) {
      const received = random(one.bytes + 1)
      return recorder.ask((_, verdict) => settleBytes(verdict as Verdict, received), one.of)
    }
    if (what < 31) return recorder.ask((all) => at(all, limiter).reset(key))
    if (what < 32) {
      return apart((_all, _verdict, others) =>
        at(others, limiter).block({ key }, { for: '2s', reason: `step ${step}` }),
      )
    }
    if (what < 33) return apart((_all, _verdict, others) => at(others, limiter).unblock({ key }))
    if (what < 39) return recorder.ask((all) => at(all, limiter).peek(key, { cost, bytes, priority }))
    for (let n = equals === 1 ? 1 : 1 + random(equals); n > 0; n--) {
      last = (await recorder.ask((all) => at(all, limiter).consume(key, { cost, bytes, priority }))) as Verdict
      if (last.allowed && !onlyCharges) opened.push({ limiter, key, cost, bytes, of: recorder.results.length - 1 })
    }
    return last
  }
  let opened: Admitted[] = []
  for (let step = 0; step < steps; step++) {
    recorder.clock.now += gap()
    if (stepsBack && random(12) === 0) {
      recorder.clock.now = Math.max(0, recorder.clock.now - Math.min(back(), farthestBack))
    }
    recorder.step()
    for (let n = 1 + random(together); n > 0; n--) await ask(step)
    // A verdict can be refunded after the reply to its batch; the latest matter most.
    admitted = [...admitted, ...opened].slice(-12)
    opened = []
  }
  return recorder.scenario(name, { forgets, owes })
}

function at<T>(items: readonly T[], i: number): T {
  return items[i] as T
}

const KEYS = ['ann', 'bob']

/** The walk of the differential tests, shorter, with more of the critical instants. */
async function* longWalks(): AsyncGenerator<Scenario> {
  for (const [name, limits] of Object.entries(ALL)) {
    for (const stepsBack of [false, true]) {
      for (const onDeny of waysToDeny(limits)) {
        const title = `${name}, ${onDeny === 'none' ? 'all or none' : 'refusals charged'}${stepsBack ? ', stepping back' : ''}`
        yield await walk(`walk: ${title}`, [{ name, limits, onDeny }], { steps: 160, stepsBack }, KEYS)
      }
    }
  }
}

/** Logs whose rings wrap around, without refunds, which would rewrite them; also near the first instants of clocks. */
async function* roundWalks(): AsyncGenerator<Scenario> {
  const round = {
    one: [slidingLog({ limit: 24, window: '6s' })],
    two: [slidingLog({ limit: 3, window: '1s' }), slidingLog({ limit: 24, window: '20s' })],
    three: [slidingLog({ limit: 9, window: '2s' }), slidingLog({ limit: 20, window: '5s' }), perMinute(30)],
    months: MORE.months ?? [],
  }
  for (const [name, limits] of Object.entries(round)) {
    for (const [when, start] of Object.entries({ '1970': 7, 'February 1970': 2 ** 32 - 900, now: undefined })) {
      const options = { steps: 260, onlyCharges: true, stepsBack: name === 'three', ...(start && { start }) }
      yield await walk(`round: ${name}, ${when}`, [{ name, limits }], options, ['ann'])
    }
  }
}

/** States that are forgotten when their life ends, which must change no decision. */
async function* forgetfulWalks(): AsyncGenerator<Scenario> {
  for (const [name, limits] of Object.entries(ALL)) {
    for (const onDeny of waysToDeny(limits)) {
      const policies = [{ name, limits, onDeny }]
      yield await walk(`lives: ${name}, ${onDeny}`, policies, { steps: 110, forgets: true }, KEYS)
      yield await walk(`lives: debts of ${name}, ${onDeny}`, policies, { steps: 60, forgets: true, owes: true }, KEYS)
    }
  }
}

/** Several policies with several calls each in one batch, on keys of users and on a shared one. */
async function* batchWalks(): AsyncGenerator<Scenario> {
  const everyone = keyed<string>('everyone-else', () => 'all')
  const names = Object.keys(POLICIES)
  for (let i = 0; i < names.length; i += 3) {
    const policies = names.slice(i, i + 4).map((name, j): Policy => {
      const own = ALL[name] as readonly Limit<string>[]
      const shared = perMinute(9, { key: everyone })
      const limits = j % 2 === 0 ? own : j % 3 === 0 ? [shared, ...own] : [...own, shared]
      return { name, limits, onDeny: (j === 1 && waysToDeny(own)[1]) || 'none' }
    })
    const title = `batches: ${names.slice(i, i + 4).join(', ')}`
    yield await walk(title, policies, { steps: 90, together: 7, stepsBack: i % 2 === 0 }, ['ann', 'bob', 'all'])
  }
}

/** Policies of one kind with several calls in one batch and without refunds, for which there are separate scripts. */
async function* alikeWalks(): AsyncGenerator<Scenario> {
  const kinds = {
    log: ['log', 'long'],
    logs: ['logs', 'nested', 'five', 'months'],
    counter: ['fixed', 'opened'],
    segments: ['weighted', 'up', 'strict', 'dropped', 'wide'],
    bucket: ['gcra', 'interval', 'queue'],
    concurrency: ['permits', 'crowd'],
  }
  for (const [kind, names] of Object.entries(kinds)) {
    const policies = names.map((name, i): Policy => {
      const limits = ALL[name] as readonly Limit<string>[]
      return { name, limits, onDeny: i % 2 === 0 ? 'none' : 'charge' }
    })
    const options = { steps: 120, together: 7, equals: 3, onlyCharges: true, stepsBack: true }
    yield await walk(`batches: alike, ${kind}`, policies, options, ['ann', 'bob', 'all'])
  }
}

/** Equal requests at once: with room for some, for none, or at cost 0; and with a reserve. */
async function* crowds(): AsyncGenerator<Scenario> {
  for (const [name, limits] of Object.entries({
    log: [slidingLog({ limit: 5, window: '9s', reserve: 1 })],
    logs: [slidingLog({ limit: 5, window: '9s' }), slidingLog({ limit: 8, window: '20s' })],
    fixed: [fixedWindow({ limit: 5, window: '9s', reserve: 1 })],
    gcra: [gcra({ limit: 5, window: '9s', reserve: 1 })],
  })) {
    const recorder = new Recorder([{ name, limits }])
    for (const [afterMs, size, cost, priority] of [
      [0, 2, 2, 0],
      [0, 3, 0, 1],
      [0, 4, 1, 0],
      [0, 3, 0, 0],
      [0, 2, 1, 1],
      [0, 3, 3, 0],
      [0, 3, 0, 1],
      [5000, 3, 1, 1],
      [6000, 9, 1, 0],
      [2000, 2, 9, 0],
    ] as const) {
      recorder.clock.now += afterMs
      recorder.step()
      for (let n = 0; n < size; n++) await recorder.ask((all) => at(all, 0).consume('k', { cost, priority }))
    }
    yield recorder.scenario(`crowds: ${name}`)
  }
}

/** Limits and traces of any shape, as for the oracles. */
async function* randomTraces(): AsyncGenerator<Scenario> {
  for (const algorithm of ALGORITHMS) {
    const samples = fc.sample(specAndTrace(algorithm), { seed: SEED, numRuns: 25 })
    for (const [i, { spec, trace }] of samples.entries()) {
      const policy: Policy = { name: `r${i}`, limits: [limitOf<string>(spec)], onDeny: i % 4 === 3 ? 'charge' : 'none' }
      yield await traced(`random: ${algorithm.title}, ${i}`, policy, trace)
    }
  }
  const several = fc
    .array(anySpec, { minLength: 2, maxLength: 4 })
    .chain((specs) => fc.record({ specs: fc.constant(specs), trace: traceFor(specs) }))
  for (const [i, { specs, trace }] of fc.sample(several, { seed: SEED, numRuns: 40 }).entries()) {
    const policy: Policy = { name: `s${i}`, limits: specs.map((spec) => limitOf<string>(spec)) }
    yield await traced(`random: several limits, ${i}`, { ...policy, onDeny: i % 3 === 2 ? 'charge' : 'none' }, trace)
  }
}

async function traced(name: string, policy: Policy, trace: Parameters<typeof play>[1]): Promise<Scenario> {
  const recorder = new Recorder([policy])
  await play(recorder.clock, trace, (cost) => {
    recorder.step()
    return recorder.ask((limiters) => at(limiters, 0).consume('key', { cost })) as Promise<Verdict>
  })
  return recorder.scenario(name)
}

/** Refunds that leave only lapsed charges, at and around the instant at which their key has to expire. */
async function* lateRefunds(): AsyncGenerator<Scenario> {
  const minute = 60_000
  for (const [name, limits] of Object.entries({
    log: [slidingLog({ limit: 7, window: '1h' })],
    gcra: MORE.slow ?? [],
  })) {
    for (const late of [69, 70, 71]) {
      const recorder = new Recorder([{ name, limits }])
      const consume = () => {
        recorder.step()
        return recorder.ask((all) => at(all, 0).consume('k'))
      }
      await consume()
      recorder.clock.now += 50 * minute
      await consume()
      recorder.clock.now += 50 * minute
      await consume()
      recorder.clock.now += late * minute
      recorder.step()
      await recorder.ask((all, verdict) => at(all, 0).refund('k', verdict as Verdict), 2)
      await consume()
      yield recorder.scenario(`late refunds: ${name}, ${late} minutes on`)
    }
  }
}

/** A full log from an impossible future, with charged refusals: its entries move to now, and the oldest are dropped. */
async function* chargedFromAhead(): AsyncGenerator<Scenario> {
  const windowMs = 10_000
  for (const limit of [3, 9]) {
    const recorder = new Recorder([
      { name: 'ahead', limits: [slidingLog({ limit, window: windowMs })], onDeny: 'charge' },
    ])
    const ask = (afterMs: number, what: 'consume' | 'peek', cost: number) => {
      recorder.clock.now += afterMs
      recorder.step()
      return recorder.ask((all) => at(all, 0)[what]('k', { cost }))
    }
    for (let i = 0; i < limit; i++) await ask(50, 'consume', 1)
    await ask(-3 * windowMs, 'consume', 2)
    for (let cost = 1; cost <= limit; cost++) await ask(100, 'peek', cost)
    await ask(0, 'consume', 1)
    for (let i = 0; i < 5; i++) await ask(windowMs / 4, 'peek', 1 + (i % limit))
    yield recorder.scenario(`ahead: charged to a full log of ${limit}`)
  }
}

/** Refusals that count, up to the maximum of counters of windows: of every width in bytes, and at and around the maximum. */
async function* chargedToTheCeiling(): AsyncGenerator<Scenario> {
  const large = 2 ** 30
  for (const [name, limit, units] of [
    ['fixed', fixedWindow<string>({ limit: large, window: '10s' }), large],
    ['weighted', slidingWindow<string>({ limit: large, window: '10s' }), large],
    ['strict', slidingWindow<string>({ limit: large, window: '10s', segments: 5, edge: 'strict' }), large],
    // 2^53 divided by the window is below the limit.
    ['months', fixedWindow<string>({ limit: 2000, window: '36500d' }), 2000],
    ['years', slidingWindow<string>({ limit: 2000, window: '36500d' }), 2000],
    ['more', fixedWindow<string>({ limit: 2 ** 40, window: '2s' }), 2 ** 40],
  ] as const) {
    const recorder = new Recorder([{ name, limits: [limit], onDeny: 'charge' }])
    const ask = (what: 'consume' | 'peek', cost: number) => {
      recorder.step()
      return recorder.ask((all) => at(all, 0)[what]('k', { cost }))
    }
    await ask('consume', units)
    const charged = recorder.results.length - 1
    for (let n = 0; n < (units === 2000 ? 2 : 4); n++) await ask('consume', units)
    recorder.step()
    await recorder.ask((all, verdict) => at(all, 0).refund('k', verdict as Verdict), charged)
    for (const part of [1, 2, 3, 4, 5]) {
      recorder.clock.now += Math.floor((limit.window as number) / 4)
      await ask('peek', Math.ceil(units / part))
    }
    yield recorder.scenario(`ceiling: ${name}`)
  }
}

/** Debts up to the maximum of counters of windows, where the refund of an earlier charge shows the count. */
async function* owedToTheCeiling(): AsyncGenerator<Scenario> {
  const edges = [{ edge: 'strict', segments: 4 }, {}] as const
  const [small, large, huge] = [2000, 2 ** 30, 2 ** 40]
  const windows = { '36500d': small, '10s': large, '2s': huge } as const
  for (const [window, limit] of Object.entries(windows)) {
    const terms = { unit: 'tokens', limit, window: window as keyof typeof windows } as const
    const limits = [fixedWindow<string>(terms), ...edges.map((edge) => slidingWindow<string>({ ...terms, ...edge }))]
    for (const [i, limit] of limits.entries()) {
      const recorder = new Recorder([{ name: 'owing', limits: [limit] }])
      const ask = async (call: Call, of?: number) => {
        recorder.step()
        await recorder.ask(call, of)
        return recorder.results.length - 1
      }
      const refunded = await ask((all) => at(all, 0).consume('k', { cost: { tokens: terms.limit } }))
      const settled = await ask((all) => at(all, 0).consume('k', { cost: { tokens: 0 } }))
      await ask((all, verdict) => at(all, 0).settle(verdict as Verdict, { tokens: 8 * terms.limit }), settled)
      await ask((all, verdict) => at(all, 0).refund('k', verdict as Verdict), refunded)
      for (const tokens of [1, Math.ceil(terms.limit / 3)]) {
        await ask((all) => at(all, 0).peek('k', { cost: { tokens } }))
        recorder.clock.now += Math.floor((limit.window as number) / 3)
      }
      yield recorder.scenario(`ceiling: debts of ${terms.limit} in ${window}, ${i}`)
    }
  }
}

/** A charged refusal just before, at and after the instant at which a debt is down to the capacity. */
async function* paidOffToTheCapacity(): AsyncGenerator<Scenario> {
  const limits = [gcra<string>({ limit: 3, window: '3s' })]
  // 6 units are owed, the rest is forgiven: 3 of them are paid off after 3 s.
  for (const late of [-1, 0, 1]) {
    const recorder = new Recorder([{ name: 'owing', limits, onDeny: 'charge' }])
    const ask = (afterMs: number, call: Call, of?: number) => {
      recorder.clock.now += afterMs
      recorder.step()
      return recorder.ask(call, of)
    }
    await ask(0, (all) => at(all, 0).consume('k'))
    await ask(0, (all, verdict) => at(all, 0).settle(verdict as Verdict, { requests: 10 }), 0)
    await ask(3000 + late, (all) => at(all, 0).consume('k'))
    for (let n = 0; n < 6; n++) await ask(250, (all) => at(all, 0).peek('k'))
    yield recorder.scenario(`owing: a refusal ${late} ms late`)
  }
}

/** Windows filled to the last unit, where that needs one more byte. */
async function* filled(): AsyncGenerator<Scenario> {
  for (const limit of [256, 65_536]) {
    const limits = [slidingWindow<string>({ limit, window: '10s', segments: 2, edge: 'strict' })]
    const recorder = new Recorder([{ name: 'filled', limits }])
    for (const cost of [limit - 1, 1, 1]) {
      recorder.step()
      await recorder.ask((all) => at(all, 0).consume('k', { cost }))
    }
    yield recorder.scenario(`filled: a limit of ${limit}`)
  }
}

/** Refunds while the clock is behind, and renewals at and around the end of a permit. */
async function* cornerCases(): AsyncGenerator<Scenario> {
  for (const [name, limits] of Object.entries(ALL)) {
    const window = Math.min(...limits.map((limit) => limit.window as number))
    const recorder = new Recorder([{ name, limits }])
    const ask = (what: 'consume' | 'refund' | 'renew' | 'peek', of?: number) => {
      recorder.step()
      return recorder.ask((all, verdict) => {
        const limiter = at(all, 0)
        if (what === 'consume') return limiter.consume('key', { cost: 2, bytes: 2 })
        if (what === 'peek') return limiter.peek('key', { cost: 1, bytes: 1 })
        return what === 'renew' ? limiter.renew(verdict as Verdict) : limiter.refund('key', verdict as Verdict)
      }, of)
    }
    await ask('consume')
    recorder.clock.now -= Math.floor(window / 4)
    await ask('peek')
    await ask('refund', 0)
    await ask('peek')
    for (const early of [1, 0, -1]) {
      recorder.clock.now += 10 * window
      await ask('consume')
      const of = recorder.results.length - 1
      recorder.clock.now += window - early
      await ask('renew', of)
      await ask('peek')
    }
    yield recorder.scenario(`corners: ${name}`)
  }
}

let recorded: Promise<Scenario[]> | undefined

/** Every scenario, recorded once. */
export function scenarios(): Promise<Scenario[]> {
  recorded ??= (async () => {
    const all = []
    for (const some of [
      crowds(),
      lateRefunds(),
      cornerCases(),
      chargedFromAhead(),
      chargedToTheCeiling(),
      owedToTheCeiling(),
      paidOffToTheCapacity(),
      filled(),
      roundWalks(),
      longWalks(),
      randomTraces(),
      batchWalks(),
      alikeWalks(),
      forgetfulWalks(),
    ]) {
      for await (const scenario of some) all.push(scenario)
    }
    return all
  })()
  return recorded
}
