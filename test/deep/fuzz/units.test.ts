import {
  concurrency,
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  type Meter,
  memoryStore,
  perMinute,
  slidingWindow,
  type Verdict,
} from '@sluice/core'
import fc from 'fast-check'
import { expectSaid, must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { type Make, number } from './support/hostile.js'
import { expectSane } from './support/verdicts.js'

/** Amounts beyond it are refused as impossible. */
const CAPACITY = 2 ** 40
const UNITS = ['requests', 'tokens', 'cents'] as const
type Unit = (typeof UNITS)[number]
const POLICIES: readonly (readonly Limit<string>[])[] = [
  [
    fixedWindow({ limit: CAPACITY, window: '1m' }),
    fixedWindow({ unit: 'tokens', limit: CAPACITY, window: '1h' }),
    fixedWindow({ unit: 'cents', limit: CAPACITY, window: '30d' }),
  ],
  [
    slidingWindow({ limit: 2 ** 24, window: '1m' }),
    gcra({ unit: 'tokens', limit: 2 ** 24, window: '1m' }),
    gcra({ unit: 'cents', limit: 2 ** 24, window: '1h' }),
    concurrency({ limit: 100_000 }),
  ],
]
const limiterOf = (limits: readonly Limit<string>[]) =>
  createLimiter<string>({ name: 'attacked', store: memoryStore({ clock: () => 1_000_000 }), limits })
const other = createLimiter<string>({ name: 'other', limits: [perMinute(9, { unit: 'tokens' })] })

const refuses = () => {
  throw new Error('a trap of the caller')
}
let reads = 0
/** Objects that pass for units by name, and read differently each time, or not at all. */
const DISGUISED: readonly ((amount: unknown) => unknown)[] = [
  (amount) => ({ tokens: amount, [Symbol('cents')]: amount }),
  (amount) => Object.assign(Object.create(null), { tokens: amount }),
  (amount) => Object.create({ tokens: amount }),
  (amount) => new Proxy({ tokens: amount }, {}),
  (amount) => new Proxy({ tokens: amount }, { get: refuses }),
  (amount) => new Proxy({ tokens: amount }, { ownKeys: refuses }),
  (amount) => new Proxy({ tokens: amount }, { getPrototypeOf: refuses }),
  () => Object.defineProperty({}, 'tokens', { enumerable: true, get: refuses }),
  () => Object.defineProperty({}, 'tokens', { enumerable: true, get: () => reads++ % 5 }),
  (amount) => Object.defineProperty({}, 'tokens', { enumerable: false, value: amount }),
  (amount) => JSON.parse(`{ "__proto__": { "tokens": 5 }, "tokens": ${Number.isFinite(amount) ? amount : 0} }`),
  (amount) => ({ tokens: { tokens: amount } }),
  (amount) => ({ Tokens: amount }),
  (amount) => ({ 'content-bytes': amount }),
  (amount) => [['tokens', amount]],
  (amount) => new Map([['tokens', amount]]),
]

const small = fc.integer({ min: 0, max: 300 }).map(
  (n): Make =>
    () =>
      n,
)
const amount = fc.oneof({ weight: 3, arbitrary: small }, { weight: 1, arbitrary: number })
const named = fc.dictionary(fc.constantFrom(...UNITS, 'concurrent-requests', 'token'), amount, { maxKeys: 3 }).map(
  (makes): Make =>
    () =>
      Object.fromEntries(Object.entries(makes).map(([unit, make]) => [unit, make()])),
)
const disguised = fc.tuple(fc.constantFrom(...DISGUISED), amount).map(
  ([disguise, make]): Make =>
    () =>
      disguise(make()),
)
const cost = fc.oneof({ weight: 3, arbitrary: named }, amount, disguised)

const move = fc.record({
  what: fc.constantFrom('consume', 'consume', 'settle', 'settle', 'add', 'add', 'stream', 'end', 'refund', 'elsewhere'),
  which: fc.nat({ max: 5 }),
  unit: fc.constantFrom<Unit>(...UNITS),
  cost,
  amount,
  step: fc.constantFrom(1, 7, 64),
})
type Move = typeof move extends fc.Arbitrary<infer T> ? T : never

const CODES = ['INVALID_COST', 'INVALID_POLICY'] as const

/** The charge of one request in one unit: what it must be, between these bounds while a meter is open. */
interface Charge {
  from: number
  to: number
  estimate: number
  added: number
  meter: Meter | undefined
  isClosed: boolean
}

/** A request, as the rules say what each unit of it is charged. */
interface Account {
  readonly verdict: Verdict
  readonly charges: Map<Unit, Charge>
  readonly isCharged: boolean
}

class Attack {
  readonly limiter: Limiter<string>
  readonly accounts: Account[] = []
  /** Whether something did not fit, so that what was charged in all is not known to the unit. */
  isFull = false

  constructor(limits: readonly Limit<string>[]) {
    this.limiter = limiterOf(limits)
  }

  async make(given: Move): Promise<void> {
    const account = this.accounts[given.which % Math.max(1, this.accounts.length)]
    const before = JSON.stringify(await this.left())
    const message = await expectSaid(CODES, () => this.#do(given, account))
    if (message !== '') must(JSON.stringify(await this.left()) === before, 'no change after an error', message)
    await this.check()
  }

  #do(given: Move, account: Account | undefined): unknown {
    if (given.what === 'consume' || !account) return this.#consume(given.cost())
    if (given.what === 'settle') return this.#settle(account, given.cost())
    if (given.what === 'refund') return this.#refund(account)
    if (given.what === 'elsewhere') return other.settle(account.verdict, given.cost() as number)
    this.#meterOf(account, given)
    if (given.what === 'end') return this.#end(account, given.unit)
    return given.what === 'add' ? this.#add(account, given, given.amount()) : this.#stream(account, given)
  }

  async #consume(cost: unknown): Promise<void> {
    const verdict = await this.limiter.consume('k', { cost: cost as number })
    expectSane(verdict)
    if (!verdict.allowed) return
    const charges = new Map<Unit, Charge>()
    for (const unit of UNITS) {
      const estimate = verdict.units[unit]?.cost ?? 0
      charges.set(unit, { from: estimate, to: estimate, estimate, added: 0, meter: undefined, isClosed: false })
    }
    // A plain cost of 0 charges nothing, so there is nothing to settle or to refund.
    this.accounts.push({ verdict, charges, isCharged: cost !== 0 })
  }

  async #settle({ verdict, charges, isCharged }: Account, cost: unknown): Promise<void> {
    // What the limiter read is known where it is plain.
    let units: Record<string, number> | undefined
    try {
      const read = JSON.stringify(cost)
      units = typeof cost === 'object' && !/accessor/.test(kindOf(cost)) ? JSON.parse(read) : undefined
    } catch {}
    await verdict.settle(cost as number)
    if (!isCharged) return
    if (typeof cost === 'number') this.#close(charges, 'requests', cost)
    else if (units) for (const unit of UNITS) if (unit in units) this.#close(charges, unit, units[unit] as number)
    if (kindOf(cost) === 'accessor') this.#loosen(charges)
  }

  async #refund({ verdict, charges, isCharged }: Account): Promise<void> {
    await this.limiter.refund('k', verdict)
    if (!isCharged) return
    for (const unit of UNITS) this.#close(charges, unit, 0)
  }

  /** The amount was read from a getter: the unit is settled, to some small amount. */
  #loosen(charges: Map<Unit, Charge>): void {
    const charge = charges.get('tokens') as Charge
    if (!charge.isClosed) Object.assign(charge, { from: 0, to: Math.max(charge.to, 5), isClosed: true })
  }

  #close(charges: Map<Unit, Charge>, unit: Unit, total: number): void {
    const charge = charges.get(unit) as Charge
    if (!charge.isClosed) Object.assign(charge, { from: total, to: total, isClosed: true })
  }

  #meterOf({ verdict, charges }: Account, { unit, step }: Move): Meter {
    const charge = charges.get(unit) as Charge
    charge.meter ??= verdict.meter(unit, { step, onExhausted: 'finish' })
    return charge.meter
  }

  async #add(account: Account, { unit }: Move, units: unknown): Promise<void> {
    const charge = account.charges.get(unit) as Charge
    const { meter } = charge as { meter: Meter }
    await meter.add(units as number)
    if (charge.isClosed) return
    charge.added += units as number
    if (charge.added > 2 ** 20) this.isFull = true
    charge.to = Math.max(charge.estimate, charge.added)
  }

  async #end({ charges }: Account, unit: Unit): Promise<void> {
    const charge = charges.get(unit) as Charge
    await Promise.all([charge.meter?.end(), charge.meter?.end()])
    this.#close(charges, unit, charge.added)
  }

  /** A stream that ends, fails or is cancelled, and whose meter is ended twice after that. */
  async #stream(account: Account, given: Move): Promise<void> {
    const charge = account.charges.get(given.unit) as Charge
    const stream = (charge.meter as Meter).stream<unknown>((chunk) => chunk as number)
    const writer = stream.writable.getWriter()
    const reader = stream.readable.getReader()
    const ends = reader.closed.catch(() => {})
    const reads = Promise.all([reader.read(), reader.read(), reader.read()]).catch(() => {})
    for (const units of [given.amount(), 3, given.amount()]) {
      const isSaid = await expectSaid(['INVALID_COST'], () => writer.write(units)).catch(() => 'a closed stream')
      if (isSaid !== '') break
      if (!charge.isClosed && typeof units === 'number') charge.added += units
    }
    if (charge.added > 2 ** 20) this.isFull = true
    await writer.close().catch(() => {})
    await Promise.all([reads, ends])
    await this.#end(account, given.unit)
  }

  async left(): Promise<Record<string, number>> {
    const cost = { requests: 0, tokens: 0, cents: 0 }
    const { units } = await this.limiter.peek('k', { cost })
    return Object.fromEntries(UNITS.map((unit) => [unit, units[unit]?.remaining ?? 0]))
  }

  async check(): Promise<void> {
    const left = await this.left()
    for (const [i, unit] of UNITS.entries()) {
      const capacity = this.limiter.limits[i]?.limit as number
      const charges = this.accounts.map(({ charges }) => charges.get(unit) as Charge)
      const sum = (bound: 'from' | 'to') => charges.reduce((all, charge) => all + charge[bound], 0)
      const used = capacity - (left[unit] as number)
      if (sum('to') > capacity) this.isFull = true
      if (this.isFull) return
      must(used >= sum('from'), `at least ${sum('from')} ${unit} charged`, used)
      must(used <= sum('to'), `at most ${sum('to')} ${unit} charged`, used)
    }
  }
}

/** Whether an object shows its units as they are, or through something that may change. What is not enumerable is no unit. */
function kindOf(cost: unknown): 'plain' | 'accessor' {
  if (typeof cost !== 'object' || cost === null) return 'plain'
  try {
    const own = Object.getOwnPropertyDescriptors(cost)
    return Object.values(own).some(({ get, enumerable }) => get && enumerable) ? 'accessor' : 'plain'
  } catch {
    return 'accessor'
  }
}

fuzz('units', 'costs, settlements and meters in any order charge each unit once, or are errors that change nothing', {
  dearness: 4,
  inputs: fc.record({ policy: fc.constantFrom(...POLICIES), moves: fc.array(move, { minLength: 1, maxLength: 20 }) }),
  async check({ policy, moves }) {
    const attack = new Attack(policy)
    for (const each of moves) await attack.make(each)
    // Nothing is lost: all charges can be returned, but for those that are closed.
    for (const { verdict, charges, isCharged } of attack.accounts) {
      await attack.limiter.refund('k', verdict)
      if (!isCharged) continue
      for (const charge of charges.values()) if (!charge.isClosed) Object.assign(charge, { from: 0, to: 0 })
    }
    await attack.check()
  },
})
