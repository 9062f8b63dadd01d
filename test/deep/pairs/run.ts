import type { Store, Verdict } from '@sluice/core'
import { type Case, type Event, limitsOf, type PolicyOf, type Request, type Sent } from './case.js'
import { type Range, Undecided } from './count.js'
import { Exchanges } from './exchanges.js'
import { type Expected, type Held, Model } from './model.js'
import { type Decided, type OverHttp, type Product, productOf } from './product.js'
import { servedBy } from './server.js'

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

interface Admitted {
  readonly process: Product
  readonly decided: Decided
  readonly held: Held
  readonly request: Request & Sent
}

type Responding = Extract<Event, { do: 'end' | 'begin' | 'leave' }>

/** Makes the store of a process. The first one has no state. */
export type MakeStore = (clock: () => number, process: number) => Store | Promise<Store>

/** Plays a case. Resolves to the number of its steps. */
export async function run(of: Case, makeStore: MakeStore): Promise<number> {
  const model = new Model(of, START)
  const closing: { close(): Promise<void> }[] = []
  const processes: Product[] = []
  try {
    for (let i = 0; i < (of.processes ?? 1); i++) {
      const store = await makeStore(() => model.now, i)
      closing.push(store)
      const product = await rejecting(() => (of.server ? servedBy(of, store) : productOf(of, store)))
      closing.push(product)
      processes.push(product)
    }
    const player = new Player(of, processes, model)
    for (const [i, event] of of.events.entries()) {
      try {
        await player.play(event)
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

/** docs/responses-and-headers.md and docs/keys-and-proxies.md. */
const STATUSES: Readonly<Record<string, number>> = { denied: 403, invalid: 400 }

class Player {
  readonly #of: Case
  readonly #processes: readonly Product[]
  readonly #model: Model
  readonly #admitted: Admitted[] = []
  readonly #exchanges: Exchanges | undefined
  #last: Verdict | undefined

  constructor(of: Case, processes: readonly Product[], model: Model) {
    this.#of = of
    this.#processes = processes
    this.#model = model
    this.#exchanges = of.server ? new Exchanges(model) : undefined
  }

  async play(event: Event): Promise<void> {
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
        return this.#peek(event, this.#process(event))
      case 'reset':
      case 'block':
      case 'unblock':
      case 'strike':
        return this.#byHand(event)
      default: {
        const one = this.#admitted[event.which % Math.max(1, this.#admitted.length)]
        if (one) await this.#change(event, one)
      }
    }
  }

  #process({ at = 0 }: { readonly at?: number }): Product {
    return this.#processes[at % this.#processes.length] as Product
  }

  async #request({ behind: which, at = 0, ...request }: Extract<Event, { do: 'request' }>): Promise<void> {
    const process = this.#process({ at })
    const earlier = which === undefined ? undefined : this.#admitted[which % Math.max(1, this.#admitted.length)]
    const behind =
      earlier && !request.upgrade && this.#exchanges?.takesMore(earlier.decided) ? earlier.decided : undefined
    const before = this.#model.mayProceed(request)
    const decided = await process.request(request, behind)
    if (decided.verdict) this.#last = decided.verdict
    check('proceeds', decided.proceeds, before)
    const { held, expected } = this.#model.decided(
      request,
      decided.proceeds,
      this.#of.way === 'document' ? undefined : decided.verdict?.allowed,
      at,
    )
    if (decided.verdict && expected && this.#of.way !== 'document') compare(decided.verdict, expected)
    if (decided.overHttp && this.#exchanges) {
      this.#exchanges.add(decided, held, behind, request.upgrade === true)
      if (!decided.proceeds) this.#exchanges.end(decided, this.#checkedRefusal(decided.overHttp, expected))
    }
    if (decided.proceeds && (decided.verdict || this.#exchanges))
      this.#admitted.push({ process, decided, held, request })
  }

  /** The status of a refusal, whose head shows what is expected. */
  #checkedRefusal({ head }: OverHttp, expected: Expected | undefined): number {
    const status = Number(head.split(' ')[1])
    // Of several policies decided later, no page says which refuses first.
    if (this.#of.way === 'document') return status
    check('status', status, STATUSES[expected?.reason ?? ''] ?? 429)
    const { limits = [], retryAfterMs } = expected ?? {}
    const left = [...(/^RateLimit: (.*)/im.exec(head)?.[1] ?? '').matchAll(/;r=(\d+)/g)]
    check('members of RateLimit', left.length, limits.length)
    for (const [i, { remaining }] of limits.entries()) between(`r of RateLimit[${i}]`, Number(left[i]?.[1]), remaining)
    const sent = /^Retry-After: (\d+)/im.exec(head)?.[1]
    // Of permits, it is an estimate: docs/queues-and-shaping.md, Requests in flight.
    if (limitsOf(this.#of.policies[0] as PolicyOf).some(({ algorithm }) => algorithm === 'concurrency')) return status
    const seconds = retryAfterMs?.map((ms) => Math.max(1, Math.ceil(ms / 1000))) as Range | undefined
    between('Retry-After', sent === undefined ? undefined : Number(sent), seconds)
    return status
  }

  async #peek(request: Request, process: Product): Promise<void> {
    for (const p of this.#of.policies.keys()) {
      const verdict = await process.peek(request, p)
      compare(verdict, this.#model.peek(request, verdict.allowed, p))
    }
  }

  async #byHand(event: Extract<Event, { do: 'reset' | 'block' | 'unblock' | 'strike' }>): Promise<void> {
    const process = this.#process(event)
    const { limiter } = process
    const identity = { client: event.client } as never
    const request: Request = { client: event.client, tenant: 'a', tier: 'free', priority: 0, cost: 1 }
    if (event.do === 'block') {
      await limiter.block(identity, { for: event.ms })
      this.#model.block(event.client, event.ms)
    } else if (event.do === 'unblock') {
      await limiter.unblock(identity)
      this.#model.unblock(event.client)
    } else if (event.do === 'strike') {
      const ban = await limiter.strike(identity)
      check('ban', ban?.until, this.#model.strike(event.client)?.until)
    } else if (this.#of.way === 'limiter') {
      await limiter.reset(process.subject(request))
      this.#model.resetAll(request, event.at)
    } else {
      await limiter.reset(identity)
      this.#model.reset(event.client, event.at)
    }
  }

  async #change(event: Exclude<Event, { client?: string } | { do: 'wait' | 'request' | 'peek' }>, one: Admitted) {
    const { held, decided, request } = one
    if (event.do === 'end' || event.do === 'begin' || event.do === 'leave') {
      if (this.#exchanges) await this.#respond(event, one, this.#exchanges)
      else if (event.do === 'end') {
        await decided.end(event.status)
        this.#model.responded(held, event.status)
      }
    }
    const { verdict } = decided
    if (!verdict) return
    const id = 'byId' in event && event.byId && this.#of.keep !== undefined ? verdict.id : undefined
    const process = id !== undefined && 'at' in event ? this.#process(event) : one.process
    const { limiter } = process
    if (event.do === 'settle') {
      if (id === undefined) await verdict.settle(event.units as never)
      else await limiter.settle(id, event.units as never)
      this.#model.settleAll(held, event.units, id !== undefined)
    } else if (event.do === 'refund') {
      if (id === undefined) await limiter.refund(process.subject(request), verdict)
      else await limiter.refund(id)
      this.#model.refund(held, id !== undefined)
    } else if (event.do === 'release') {
      if (id === undefined) await limiter.release(verdict)
      else await limiter.release(id)
      this.#model.release(held)
    } else if (event.do === 'renew') {
      if (id === undefined) await limiter.renew(verdict)
      else await limiter.renew(id)
      this.#model.renew(held)
    } else if (event.do === 'meter') await this.#stream(event, held, verdict)
    const cost = limitsOf(this.#of.policies[0] as PolicyOf).some(({ unit }) => unit) ? {} : 1
    await this.#peek({ ...request, cost }, process)
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
    if (counting.length === 0 || counting.some(({ isDone }) => isDone)) return
    const [least, most] = this.#model.room(held, unit)
    const meter = verdict.meter(unit, { step, onExhausted })
    let sent = 0
    while (sent < length) {
      sent++
      if (!(await meter.add(1))) break
    }
    const isWhole = onExhausted === 'finish' || length <= least
    // A stream exceeds a limit by a step, and by what comes while a step is charged: docs/units.md, Meter a stream.
    if (isWhole) check('sent', sent, length)
    else between('sent', sent, [Math.min(least, length), most + 2 * step])
    if (total === undefined) {
      await meter.end()
      this.#model.end(held, unit, sent)
    } else {
      await verdict.settle({ [unit]: total })
      this.#model.settle(held, unit, total, true)
      this.#model.stepped(held, unit, sent)
    }
  }
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
