import type { Store, Verdict } from '@sluice/core'
import { type Case, type Event, limitsOf, type PolicyOf, type Request, type Sent } from './case.js'
import { type Range, Undecided } from './count.js'
import { Exchanges } from './exchanges.js'
import type { Expected } from './expected.js'
import { HAS } from './features.js'
import { type Held, Model } from './model.js'
import { type Decided, type OverHttp, type Product, productOf } from './product.js'
import { servedBy } from './server.js'
import { withOutages } from './store-that-fails.js'

/** Product and model disagree. */
export class Finding extends Error {
  /** The field in which they do. */
  readonly what: string

  constructor(what: string, got: unknown, expected: unknown) {
    super(`${what} is ${got}, expected ${expected}`)
    this.what = what
  }
}

/** The policies are rejected, when they are made or by a call. */
export class Rejected extends Error {}

const START = 20_000 * 86_400_000

interface Process {
  readonly product: Product
  readonly store: Store & { isAway?: boolean }
}

interface Admitted {
  readonly process: number
  readonly decided: Decided
  readonly held: Held
  readonly request: Request & Sent
}

type ById = Extract<Event, { do: 'settle' | 'refund' | 'release' | 'renew' }>
type Responding = Extract<Event, { do: 'end' | 'begin' | 'leave' }>

/** Makes the store of a process. The first one has no state. */
export type MakeStore = (clock: () => number, process: number, of: Case) => Store | Promise<Store>

/** Plays a case. `passTime`: makes timers due that exchange relaxed counts. Resolves to the number of its steps. */
export async function run(of: Case, makeStore: MakeStore, passTime?: () => void): Promise<number> {
  const model = new Model(of, START)
  const closing: { close(): Promise<void> }[] = []
  const processes: Process[] = []
  try {
    for (let i = 0; i < (of.processes ?? 1); i++) {
      const made = await makeStore(() => model.now, i, of)
      closing.push(made)
      const store = HAS.outages(of) ? withOutages(made) : made
      const product = await rejecting(() => (of.server ? servedBy(of, store) : productOf(of, store)))
      closing.push(product)
      processes.push({ product, store })
    }
    const player = new Player(of, processes, model, passTime)
    for (const [i, event] of of.events.entries()) {
      try {
        await player.play(event, of.events[i + 1])
      } catch (error) {
        if (error instanceof Undecided) return i
        if (isInvalid(error)) throw new Rejected((error as Error).message, { cause: error })
        if (error instanceof Finding) error.message = `event ${i + 1}, ${JSON.stringify(event)}: ${error.message}`
        throw error
      }
    }
    return of.events.length
  } finally {
    for (const each of closing.toReversed()) await each.close()
  }
}

async function rejecting<T>(make: () => Promise<T>): Promise<T> {
  try {
    return await make()
  } catch (error) {
    if (isInvalid(error)) throw new Rejected((error as Error).message, { cause: error })
    throw error
  }
}

function isInvalid(error: unknown): boolean {
  return (error as { code?: unknown } | undefined)?.code === 'INVALID_POLICY'
}

/** docs/responses-and-headers.md and docs/keys.md. */
const STATUSES: Readonly<Record<string, number>> = { denied: 403, invalid: 400, unavailable: 503 }

class Player {
  readonly #of: Case
  readonly #processes: readonly Process[]
  readonly #model: Model
  readonly #admitted: Admitted[] = []
  readonly #exchanges: Exchanges | undefined
  readonly #passTime: (() => void) | undefined
  #last: Verdict | undefined

  constructor(of: Case, processes: readonly Process[], model: Model, passTime: (() => void) | undefined) {
    this.#passTime = passTime
    this.#of = of
    this.#processes = processes
    this.#model = model
    this.#exchanges = of.server ? new Exchanges(model) : undefined
  }

  /** `next`: the event after this one. */
  async play(event: Event, next: Event | undefined): Promise<void> {
    const model = this.#model
    switch (event.do) {
      case 'wait':
        model.now += event.ms === 'retry' ? Math.max(0, (this.#last?.retryAfterMs ?? 0) - (event.early ?? 0)) : event.ms
        return
      case 'request': {
        const { times = 1, ...request } = event
        for (let n = 0; n < times; n++) await this.#request(request)
        return
      }
      case 'peek':
        this.#enter(event)
        return this.#peek(event)
      case 'outage':
      case 'return': {
        const { store } = this.#enter(event)
        store.isAway = event.do === 'outage'
        if (store.isAway) model.outages.begin(model.process)
        else model.outages.end(model.process)
        return
      }
      case 'exchange':
        return this.#exchangeCounts()
      case 'reset':
      case 'block':
      case 'unblock':
      case 'strike':
        return this.#byHand(event)
      default: {
        const one = this.#admitted[event.which % Math.max(1, this.#admitted.length)]
        if (!one) return
        await this.#change(event, one)
        // What the reply of the change says has to do in an outage.
        if (one.decided.verdict && next?.do !== 'outage') await this.#peekAt(one)
      }
    }
  }

  /** The process that does an event. */
  #enter({ at = 0 }: { readonly at?: number }): Process {
    const { length } = this.#processes
    this.#model.process = at % length
    return this.#processes[at % length] as Process
  }

  get #product(): Product {
    return (this.#processes[this.#model.process] as Process).product
  }

  async #request({ behind: which, at = 0, ...request }: Extract<Event, { do: 'request' }>): Promise<void> {
    const { product } = this.#enter({ at })
    const earlier = which === undefined ? undefined : this.#admitted[which % Math.max(1, this.#admitted.length)]
    const behind =
      earlier && !request.upgrade && this.#exchanges?.takesMore(earlier.decided) ? earlier.decided : undefined
    const before = this.#model.mayProceed(request)
    const decided = await product.request(request, behind)
    if (decided.verdict) this.#last = decided.verdict
    check('proceeds', decided.proceeds, before)
    const { held, expected } = this.#model.decided(
      request,
      decided.proceeds,
      this.#of.way === 'document' ? undefined : decided.verdict?.allowed,
    )
    if (decided.verdict && expected && this.#of.way !== 'document') compare(decided.verdict, expected)
    if (decided.overHttp && this.#exchanges) {
      this.#exchanges.add(decided, held, behind, request.upgrade === true)
      if (!decided.proceeds) this.#exchanges.end(decided, this.#checkedRefusal(decided.overHttp, expected))
    }
    if (decided.proceeds && (decided.verdict || this.#exchanges))
      this.#admitted.push({ process: this.#model.process, decided, held, request })
  }

  /** The status of a refusal, whose head shows what is expected. */
  #checkedRefusal({ head }: OverHttp, expected: Expected | undefined): number {
    const status = Number(head.split(' ')[1])
    // Of several policies decided later, no page says which refuses first.
    if (this.#of.way === 'document') return status
    check('status', status, STATUSES[expected?.reason ?? ''] ?? 429)
    // While the store is away, a process does not know the quota of all: docs/when-redis-fails.md.
    const { limits: known = [], retryAfterMs, kind } = expected ?? {}
    const limits = kind === 'unavailable' ? [] : known
    const left = [...(/^RateLimit: (.*)/im.exec(head)?.[1] ?? '').matchAll(/;r=(\d+)/g)]
    check('members of RateLimit', left.length, limits.length)
    for (const [i, { remaining }] of limits.entries()) between(`r of RateLimit[${i}]`, Number(left[i]?.[1]), remaining)
    const sent = /^Retry-After: (\d+)/im.exec(head)?.[1]
    // Of permits, it is an estimate: docs/queues.md, Requests in flight.
    if (limitsOf(this.#of.policies[0] as PolicyOf).some(({ algorithm }) => algorithm === 'concurrency')) return status
    const seconds = retryAfterMs?.map((ms) => Math.max(1, Math.ceil(ms / 1000))) as Range | undefined
    between('Retry-After', sent === undefined ? undefined : Number(sent), seconds)
    return status
  }

  async #peek(request: Request): Promise<void> {
    for (const p of this.#of.policies.keys()) {
      const verdict = await this.#product.peek(request, p)
      compare(verdict, this.#model.peek(request, verdict.allowed, p))
    }
  }

  /** Twice, as one process learns of another when both have made an exchange. */
  async #exchangeCounts(): Promise<void> {
    if (!this.#passTime) return
    const other: Request = { client: 'zoe', tenant: 't3', tier: 'free', priority: 0, cost: 1 }
    for (const _ of ['sent', 'taken over']) {
      this.#passTime()
      for (const at of this.#processes.keys()) {
        this.#enter({ at })
        // Its reply comes after those of the exchange.
        for (const p of this.#of.policies.keys()) await this.#product.peek(other, p)
      }
    }
    this.#model.exchange()
  }

  async #byHand(event: Extract<Event, { do: 'reset' | 'block' | 'unblock' | 'strike' }>): Promise<void> {
    const { product } = this.#enter(event)
    const { limiter } = product
    const identity = { client: event.client } as never
    const request: Request = { client: event.client, tenant: 'a', tier: 'free', priority: 0, cost: 1 }
    const isAway = this.#model.outages.isAway(this.#model.process)
    if (event.do === 'block') {
      if (!(await isDone(limiter.block(identity, { for: event.ms }), isAway))) return
      this.#model.block(event.client, event.ms)
    } else if (event.do === 'unblock') {
      if (!(await isDone(limiter.unblock(identity), isAway))) return
      this.#model.unblock(event.client)
    } else if (event.do === 'strike') {
      const ban = await limiter.strike(identity)
      check('ban', ban?.until, this.#model.strike(event.client)?.until)
    } else if (this.#of.way === 'limiter') {
      await isDone(limiter.reset(product.subject(request)), isAway)
      this.#model.resetAll(request)
    } else {
      await isDone(limiter.reset(identity), isAway)
      this.#model.reset(event.client)
    }
  }

  async #change(
    event: Exclude<Event, { client?: string } | { do: 'wait' | 'request' | 'peek' | 'outage' | 'return' | 'exchange' }>,
    one: Admitted,
  ) {
    const { held, decided, request } = one
    this.#enter({ at: one.process })
    if (event.do === 'end' || event.do === 'begin' || event.do === 'leave') {
      if (this.#exchanges) await this.#respond(event, one, this.#exchanges)
      else if (event.do === 'end') {
        await decided.end(event.status)
        this.#model.responded(held, event.status)
      }
    }
    const { verdict } = decided
    if (!verdict) return
    const isById = 'byId' in event && event.byId === true && this.#of.keep !== undefined && verdict.id !== undefined
    if (isById) {
      if ('at' in event) this.#enter(event)
      await this.#changeById(event as ById, held, verdict.id as string)
    } else if (event.do === 'settle') {
      await verdict.settle(event.units as never)
      this.#model.settleAll(held, event.units, false)
    } else if (event.do === 'refund') {
      await this.#product.limiter.refund(this.#product.subject(request), verdict)
      this.#model.refund(held, false)
    } else if (event.do === 'release') {
      await this.#product.limiter.release(verdict)
      this.#model.release(held)
    } else if (event.do === 'renew') {
      await this.#product.limiter.renew(verdict)
      this.#model.renew(held)
    } else if (event.do === 'meter') await this.#stream(event, held, verdict)
  }

  /** The units that the limits of a request have left. */
  async #peekAt({ request }: Admitted): Promise<void> {
    const cost = limitsOf(this.#of.policies[0] as PolicyOf).some(({ unit }) => unit) ? {} : 1
    await this.#peek({ ...request, cost })
  }

  async #changeById(event: ById, held: Held, id: string): Promise<void> {
    const { limiter } = this.#product
    const model = this.#model
    // Without the store, a process knows the ids of its own charges alone: docs/charges.md, Ids.
    const isAway = model.outages.isAway(model.process)
    const isOwn = held.isLocal && held.process === model.process
    const change = {
      settle: () => limiter.settle(id, (event as { units: number }).units),
      refund: () => limiter.refund(id),
      release: () => limiter.release(id),
      renew: () => limiter.renew(id),
    }[event.do]
    await isDone(change(), isAway && !isOwn, isAway)
    if (event.do === 'settle') model.settleAll(held, event.units, true)
    else model[event.do](held, true)
  }

  async #respond(event: Responding, { decided, request }: Admitted, exchanges: Exchanges): Promise<void> {
    const overHttp = decided.overHttp as OverHttp
    if (event.do === 'leave') {
      if (!exchanges.canLeave(decided)) return
      await overHttp.leave(event.reset === true)
      exchanges.close(decided)
    } else if (event.do === 'begin') {
      if (!exchanges.canBegin(decided)) return
      await overHttp.begin(event.status)
      exchanges.begin(decided, event.status)
    } else if (event.by === 'destroy') {
      if (!exchanges.isConnected(decided)) return
      await decided.end(event.status, event.by)
      exchanges.close(decided)
    } else if (exchanges.canEnd(decided)) {
      const status = request.upgrade && event.status === 200 ? 101 : event.status
      await decided.end(status, event.by)
      exchanges.end(decided, status)
    }
  }

  async #stream(event: Extract<Event, { do: 'meter' }>, held: Held, verdict: Verdict): Promise<void> {
    const { unit, length, step, onExhausted, total } = event
    const counting = held.charges.filter((charged) => charged.unit === unit)
    if (counting.length === 0 || counting.some(({ isDone, isClosed }) => isDone || isClosed)) return
    // Steps of an outage count elsewhere: test/unit/limiter/settled-outages.test.ts.
    if (held.isLocal || this.#model.outages.isAway(held.process)) return
    const [least, most] = this.#model.room(held, unit)
    const meter = verdict.meter(unit, { step, onExhausted })
    let sent = 0
    while (sent < length) {
      sent++
      if (!(await meter.add(1))) break
    }
    const isWhole = onExhausted === 'finish' || length <= least
    // A stream exceeds a limit by a step, and by what comes while a step is charged: docs/settle.md, Meter a stream.
    if (isWhole) check('sent', sent, length)
    else between('sent', sent, [Math.min(least, length), most + 2 * step])
    if (total === undefined) {
      await meter.end()
      this.#model.end(held, unit, sent)
    } else {
      await verdict.settle({ [unit]: total })
      this.#model.settle(held, unit, total, { isMetered: true })
      this.#model.stepped(held, unit, sent)
    }
  }
}

/** Whether a call is done. It rejects if the store is away. */
async function isDone(call: Promise<unknown>, isAway: boolean, mayReject = isAway): Promise<boolean> {
  const error = await call.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (error !== undefined && (!mayReject || (error as { code?: unknown }).code !== 'STORE_UNAVAILABLE')) throw error
  if (isAway) check('a call without the store', error === undefined ? 'done' : 'rejected', 'rejected')
  return error === undefined
}

function check(what: string, got: unknown, expected: unknown): void {
  if (expected !== undefined && got !== expected) throw new Finding(what, got, expected)
}

function between(what: string, got: number | undefined, range: Range | undefined): void {
  if (range?.some(Number.isNaN)) throw new Error('the case is not whole')
  const isRight = range === undefined ? got === undefined : got !== undefined && got >= range[0] && got <= range[1]
  if (!isRight) throw new Finding(what, got, range && [...new Set(range)].join(' to '))
}

function compare(verdict: Verdict, expected: Expected): void {
  check('allowed', verdict.allowed, expected.allowed)
  if (expected.allowed === false) check('reason', verdict.reason, expected.reason)
  if (expected.isRepeated) return
  if (expected.kind !== undefined) check('kind', verdict.kind, expected.kind)
  if (expected.reason === 'denied') return
  if (!verdict.allowed) between('retryAfterMs', verdict.retryAfterMs, expected.retryAfterMs)
  if (verdict.allowed && expected.delayMs) between('delayMs', verdict.delayMs, expected.delayMs)
  if (!expected.limits) return
  check('limits', verdict.limits.length, expected.limits.length)
  for (const [i, each] of expected.limits.entries()) {
    const { remaining, retryAfterMs, resetAfterMs } = verdict.limits[i] as Verdict['limits'][number]
    between(`limits[${i}].remaining`, remaining, each.remaining)
    between(`limits[${i}].resetAfterMs`, resetAfterMs, each.resetAfterMs)
    between(`limits[${i}].retryAfterMs`, retryAfterMs, each.retryAfterMs)
  }
}
