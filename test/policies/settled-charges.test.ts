// Takes long: begins first.
import { createLimiter, fixedWindow, memoryStore, redisStore, type Store, type Verdict } from '@sluice/core'
import fc from 'fast-check'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { changingPolicies } from '../support/changing-policies.js'
import { contextOf } from '../support/context.js'
import { byEffort } from '../support/effort.js'
import { redisForTests } from '../support/redis-for-tests.js'

const { client } = await redisForTests()
const open: Store[] = []
beforeEach(() => client.flushall())
afterAll(() => Promise.all(open.map((store) => store.close())))

const STORES: Record<string, () => Store> = {
  memory: () => memoryStore(),
  Redis: () => redisStore(client, { timeout: 5000 }),
}
const RUNS = byEffort({ quick: 40, usual: 60, full: 2000 })

type Unit = 'tokens' | 'cents'
const UNITS: readonly Unit[] = ['tokens', 'cents']

interface LimitSpec {
  readonly unit: Unit
  readonly limit: number
  readonly isCapped: boolean
}

/** Fields of a policy beside its limits and costs. Each set but the first has it decided later than the others, or apart. */
const WAYS: Record<string, object> = {
  together: {},
  count: { count: { only: 'success' } },
  percent: { enforce: { percent: 99.99 } },
  ban: { ban: { by: 'client', after: 1000, within: '1d', for: ['1h'] } },
  deny: { deny: { client: ['eve'] } },
  anonymous: { anonymous: 'skip' },
  report: { enforce: { mode: 'report' } },
}
type Way = keyof typeof WAYS

interface PolicySpec {
  readonly way: Way
  readonly limits: readonly LimitSpec[]
}

type Units = Partial<Record<Unit, number>>

interface Change {
  readonly what: 'settle' | 'settle requests' | 'refund' | 'end' | 'settle stream' | 'refund stream'
  /** Of the admitted requests so far. */
  readonly which: number
  readonly units: Units
  readonly unit: Unit
  readonly length: number
  readonly step: number
  readonly isCut: boolean
}

type Step = { readonly costs: readonly Units[] } | Change

/** The requests of one client to some policies, on a clock that stands still for them. */
interface Client {
  request(costs: readonly Units[]): Promise<Verdict | undefined>
  refund(verdict: Verdict): Promise<unknown>
  /** The used units of each limit of each policy. */
  used(): Promise<number[][]>
}

interface LimitCount extends LimitSpec {
  /** Whether it ends no stream. */
  readonly isReported: boolean
  count: number
}

/** A request that was admitted, with the charges that it holds. */
interface Held {
  readonly charges: Map<LimitCount, number>
  readonly done: Set<Unit>
  isOver: boolean
}

/** The counts by definition: a number for each limit, as no time passes. */
class Model {
  readonly groups: readonly (readonly LimitCount[])[]
  readonly #policies: readonly PolicySpec[]

  constructor(policies: readonly PolicySpec[]) {
    this.#policies = policies
    this.groups = policies.map(({ way, limits }) =>
      limits.map((limit) => ({ ...limit, isReported: way === 'report', count: 0 })),
    )
  }

  admit(costs: readonly Units[]): Held | undefined {
    const charges = new Map<LimitCount, number>()
    const enforced = this.#policies.flatMap(({ way }, p) => (way === 'report' ? [] : [p]))
    const hasRoom = enforced.map((p) => this.#charge(p, costs[p] as Units, charges)).every(Boolean)
    if (!hasRoom) charges.clear()
    // Charged even where others refuse. No refusal of theirs counts.
    this.#policies.forEach(({ way }, p) => {
      const own = new Map<LimitCount, number>()
      if (way === 'report' && this.#charge(p, costs[p] as Units, own)) for (const each of own) charges.set(...each)
    })
    for (const [limit, cost] of charges) limit.count += cost
    return hasRoom ? { charges, done: new Set(), isOver: false } : undefined
  }

  /** Notes what a policy charges. Returns whether it has room. */
  #charge(p: number, costs: Units, charges: Map<LimitCount, number>): boolean {
    let hasRoom = true
    for (const limit of this.groups[p] as LimitCount[]) {
      const named = costs[limit.unit]
      const cost = named === undefined ? 0 : limit.isCapped ? Math.min(named, limit.limit) : named
      const need = named === undefined ? 1 : cost
      hasRoom &&= need === 0 || limit.count + need <= limit.limit
      charges.set(limit, cost)
    }
    return hasRoom
  }

  /** Replaces what a request holds of a unit. */
  settle({ charges, done, isOver }: Held, unit: Unit, total: number): void {
    if (done.has(unit) || isOver) return
    done.add(unit)
    for (const [limit, charged] of charges) if (limit.unit === unit) add(limit, total - charged)
  }

  refund(held: Held): void {
    for (const unit of UNITS) this.settle(held, unit, 0)
    held.isOver = true
  }

  /** The units after which a stream has to end, but for its last step. */
  bound({ charges }: Held, unit: Unit): number {
    const counting = [...charges].filter(([limit]) => limit.unit === unit && !limit.isReported)
    return Math.min(...counting.map(([{ limit, count }, charged]) => charged + Math.max(0, limit - count)))
  }

  /** Charges a stream of so many units, as far as each limit has room for those beyond its estimate. */
  end({ charges, done }: Held, unit: Unit, length: number): void {
    done.add(unit)
    for (const [limit, charged] of charges) {
      if (limit.unit === unit) add(limit, Math.min(length - charged, Math.max(0, limit.limit - limit.count)))
    }
  }
}

/** A limit of 0 refuses everything as it is. */
function add(limit: LimitCount, units: number): void {
  if (units < 0 || limit.limit > 0) limit.count += units
}

const unit = fc.constantFrom<Unit>('tokens', 'tokens', 'cents')
const limits = fc.array(
  fc.record({ unit, limit: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.constant(100)), isCapped: fc.boolean() }),
  { minLength: 1, maxLength: 3 },
)
const amount = fc.oneof(fc.nat({ max: 40 }), fc.nat({ max: 400 }))
const units = fc.record({ tokens: amount, cents: amount }, { requiredKeys: [] })
const policiesOf = (ways: readonly Way[]) => {
  const policy = fc.record({ way: fc.constantFrom(...ways), limits })
  return fc.array(policy.map(withRoomForReports), { minLength: 1, maxLength: 4 })
}
/** A policy in report mode has room for all: it goes on metering what it has refused. */
function withRoomForReports({ way, limits }: PolicySpec): PolicySpec {
  const more = way === 'report' ? 1_000_000 : 0
  return { way, limits: limits.map((each) => ({ ...each, limit: each.limit + more })) }
}
const change = fc.record<Change>({
  what: fc.constantFrom('settle', 'settle requests', 'refund', 'end', 'end', 'settle stream', 'refund stream'),
  which: fc.nat(),
  units,
  unit,
  length: amount,
  step: fc.integer({ min: 1, max: 80 }),
  isCut: fc.boolean(),
})
const steps = fc.array(fc.oneof(fc.record({ costs: fc.array(units, { minLength: 4, maxLength: 4 }) }), change), {
  minLength: 1,
  maxLength: 12,
})

const options = ({ unit, limit, isCapped }: LimitSpec, l: number) => ({
  name: `l${l}`,
  unit,
  limit,
  window: '366d' as const,
  ...(isCapped && { estimate: 'cap' as const }),
})

async function clientInCode([policy]: readonly PolicySpec[], store: Store): Promise<Client> {
  const limits = (policy as PolicySpec).limits.map((limit, l) => fixedWindow<string>(options(limit, l)))
  const limiter = createLimiter<string>({ name: 'code', store, limits })
  return {
    async request([cost = {}]) {
      const counted = Object.entries(cost).filter(([unit]) => limits.some((limit) => limit.unit === unit))
      const verdict = await limiter.consume('ann', { cost: Object.fromEntries(counted) })
      return verdict.allowed ? verdict : undefined
    },
    refund: (verdict) => limiter.refund('ann', verdict),
    used: async () => [usedOf(await limiter.peek('ann'))],
  }
}

function usedOf({ limits }: Verdict): number[] {
  return limits.map(({ limit, remaining }) => limit - remaining)
}

async function clientOfDocument(specs: readonly PolicySpec[], store: Store): Promise<Client> {
  interface Request {
    readonly costs: readonly Units[]
  }
  const names = specs.map((_, p) => `p${p}`)
  const costs: Record<string, (request: Request) => number> = {}
  const document = specs.map(({ way, limits }, p) => {
    const counted = [...new Set(limits.map(({ unit }) => unit))]
    for (const unit of counted) costs[`p${p}-${unit}`] = (request) => request.costs[p]?.[unit] ?? 0
    return {
      ...WAYS[way],
      key: 'client',
      limits: limits.map((limit, l) => ({ algorithm: 'fixedWindow', ...options(limit, l) })),
      cost: Object.fromEntries(counted.map((unit) => [unit, `p${p}-${unit}`])),
    }
  })
  const policies = { costs, keys: { client: () => 'ann' } }
  const own = Object.fromEntries(names.map((name, p) => [name, document[p]]))
  const { guard, limiter } = await changingPolicies({ policies: own }, { store, policies })
  return {
    async request(costs) {
      const request: Request = { costs }
      const { proceed, verdict } = await guard(contextOf({ request }))
      return proceed ? verdict : undefined
    },
    refund: (verdict) => limiter.refund({ client: 'ann' } as never, verdict),
    async used() {
      const peeks = names.map((tier) => limiter.peek({ client: 'ann' } as never, { tier, cost: 0 }))
      return (await Promise.all(peeks)).map(usedOf)
    },
  }
}

/** Sends a stream, a unit at a time, until it is cut. */
async function stream(verdict: Verdict, { unit, length, step, isCut }: Change): Promise<[sent: number, () => unknown]> {
  const meter = verdict.meter(unit, { step, onExhausted: isCut ? 'cut' : 'finish' })
  for (let sent = 0; sent < length; ) {
    sent++
    if (!(await meter.add(1))) return [sent, () => meter.end()]
  }
  return [length, () => meter.end()]
}

async function expectCounts(specs: readonly PolicySpec[], steps: readonly Step[], client: Client, isInCode: boolean) {
  const model = new Model(specs)
  const admitted: { verdict: Verdict; held: Held }[] = []
  for (const step of steps) {
    if ('costs' in step) {
      const costs = isInCode ? step.costs : step.costs.map((cost) => ({ tokens: 0, cents: 0, ...cost }))
      const held = model.admit(costs)
      const verdict = await client.request(costs)
      expect(verdict !== undefined).toBe(held !== undefined)
      if (verdict && held) admitted.push({ verdict, held })
    } else if (admitted.length > 0) {
      const { verdict, held } = admitted[step.which % admitted.length] as (typeof admitted)[number]
      await make(step, verdict, held, model, client)
    }
    const used = model.groups.map((limits) => limits.map(({ limit, count }) => Math.min(limit, Math.max(0, count))))
    expect(await client.used()).toEqual(used)
  }
}

async function make(change: Change, verdict: Verdict, held: Held, model: Model, client: Client): Promise<void> {
  const { what, unit, length, step, isCut } = change
  const counts = (unit: string) => [...held.charges.keys()].some((limit) => limit.unit === unit)
  if (what === 'refund') {
    await client.refund(verdict)
    return model.refund(held)
  }
  if (what === 'settle') {
    const units = Object.entries(change.units).filter(([unit]) => counts(unit))
    await verdict.settle(Object.fromEntries(units))
    for (const [unit, total] of units) model.settle(held, unit as Unit, total)
    return
  }
  if (what === 'settle requests') {
    // No limit counts them.
    await verdict.settle(0)
    return
  }
  if (!counts(unit) || held.done.has(unit) || held.isOver) return
  const bound = model.bound(held, unit)
  const [sent, end] = await stream(verdict, change)
  if (!isCut || length <= bound) expect(sent).toBe(length)
  else {
    expect(sent).toBeGreaterThan(Math.min(bound, length - 1))
    expect(sent).toBeLessThanOrEqual(bound + 2 * step)
  }
  if (what === 'end') {
    await end()
    return model.end(held, unit, sent)
  }
  if (what === 'refund stream') {
    await client.refund(verdict)
    return model.refund(held)
  }
  const total = change.units[unit] ?? sent
  await verdict.settle({ [unit]: total })
  return model.settle(held, unit, total)
}

test.each(Object.entries(WAYS))(
  'a verdict of several policies settles, meters and names the charges of all: %s',
  async (_, own) => {
    const limits = [{ algorithm: 'fixedWindow', unit: 'tokens', limit: 1000, window: '1d' }]
    const both = {
      a: { key: 'client', limits, cost: { tokens: 50 } },
      b: { key: 'client', limits, cost: { tokens: 50 }, ...own },
    }
    const policies = { keys: { client: () => 'ann' } }
    const terms = { policies, guard: { charges: { keep: '1h' } } }
    const { guard, limiter } = await changingPolicies({ policies: both }, terms)
    const admit = async () => (await guard(contextOf())).verdict as Verdict
    const used = async () => {
      const peeks = ['a', 'b'].map((tier) => limiter.peek({ client: 'ann' } as never, { tier, cost: 0 }))
      return (await Promise.all(peeks)).flatMap(usedOf)
    }
    await (await admit()).settle({ tokens: 20 })
    expect(await used()).toEqual([20, 20])
    expect(await limiter.settle((await admit()).id as string, { tokens: 10 })).toBe('done')
    expect(await used()).toEqual([30, 30])
    const meter = (await admit()).meter('tokens')
    expect(await meter.add(70)).toBe(true)
    await meter.end()
    expect([meter.used, await used()]).toEqual([70, [100, 100]])
    await limiter.settle(await admit(), { tokens: 5 })
    expect(await used()).toEqual([105, 105])
    const last = await admit()
    await expect(last.settle({ tokens: 5, coins: 1 })).rejects.toThrow('expected units that limits count')
    await expect(last.settle({ tokens: -1 })).rejects.toThrow('settle: tokens: expected a whole number')
    expect(await used()).toEqual([155, 155])
    expect(await limiter.refund({ client: 'ann' } as never, last)).toBe(true)
    expect(await used()).toEqual([105, 105])
  },
)

describe('a handler settles and meters units that no policy of its request counts', () => {
  const tokens = [{ algorithm: 'fixedWindow', unit: 'tokens', limit: 100, window: '1d' }]
  const requests = [{ algorithm: 'fixedWindow', limit: 100, window: '1d' }]

  test.each<[string, object]>([
    [
      'a list admits its client past the policy that does',
      { chat: { allow: { client: ['ann'] }, limits: tokens, cost: { tokens: 50 } } },
    ],
    ['another tier does', { chat: { tier: 'plan', tiers: { free: requests, pro: tokens }, cost: { tokens: 50 } } }],
    ['another match does', { chat: { match: { paths: ['/chat'] }, limits: tokens, cost: { tokens: 50 } } }],
  ])('where %s', async (_, chat) => {
    const terms = { policies: { keys: { client: () => 'ann' }, tiers: { plan: () => 'free' } } }
    const api = { key: 'client', limits: requests }
    const own = Object.fromEntries(Object.entries(chat).map(([name, policy]) => [name, { key: 'client', ...policy }]))
    const { guard } = await changingPolicies({ policies: { api, ...own } }, terms)
    const verdict = (await guard(contextOf())).verdict as Verdict
    expect(await verdict.meter('tokens').add(1000)).toBe(true)
    expect(await verdict.settle({ tokens: 20 })).toBe(false)
  })
})

describe.each(Object.entries(STORES))('each limit counts what an independent model says, on %s', (name, makeStore) => {
  const numRuns = name === 'memory' ? RUNS : Math.ceil(RUNS / 5)

  test('of a policy in code, whatever is charged, streamed and settled', () =>
    fc.assert(
      fc.asyncProperty(policiesOf(['together']), steps, async (specs, steps) => {
        await client.flushall()
        const store = makeStore()
        open.push(store)
        await expectCounts(specs.slice(0, 1), steps, await clientInCode(specs, store), true)
      }),
      { numRuns },
    ))

  test('of the policies of a document, whatever is charged, streamed and settled', () =>
    fc.assert(
      fc.asyncProperty(policiesOf(Object.keys(WAYS)), steps, async (specs, steps) => {
        await client.flushall()
        const store = makeStore()
        open.push(store)
        await expectCounts(specs, steps, await clientOfDocument(specs, store), false)
      }),
      { numRuns },
    ))
})
