import { EventEmitter } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import * as core from '@sluice/core'
import { createGuard, type Guard } from '@sluice/core/http'
import { policies } from '@sluice/policies'
import { contextOf } from '../../support/context.js'
import {
  type Case,
  costIn,
  hasReserve,
  type Kind,
  type LimitOf,
  type PolicyOf,
  type Request,
  type Sent,
  unitsOf,
} from './case.js'

/** What was decided on a request. */
export interface Decided {
  readonly proceeds: boolean
  readonly verdict: core.Verdict | undefined
  /** Sends the response of a request that proceeded. */
  end(status: number, by?: 'error' | 'destroy'): Promise<unknown>
  readonly overHttp?: OverHttp
}

/** A response over HTTP, as its handler and its client treat it. */
export interface OverHttp {
  /** Sends the head and the first bytes. */
  begin(status: number): Promise<void>
  /** The client ends its connection. */
  leave(isReset: boolean): Promise<void>
  /** The head, once it is written. */
  readonly head: string
}

/** The policies of a case, as a user makes them. */
export interface Product {
  readonly limiter: core.Limiter<never>
  /** `behind`: a request on whose connection it comes, over HTTP. */
  request(request: Request & Sent, behind?: Decided): Promise<Decided>
  peek(request: Request, policy: number): Promise<core.Verdict>
  close(): Promise<void>
  /** The identity of a client, as methods of its limiter take it. */
  subject(request: Request): never
}

/** What a request says of itself. */
type Read = (request: never) => Request

function keysOf(read: Read): Record<Kind, core.KeyFunction<never>> {
  return {
    client: core.keyed('client', (request) => read(request).client),
    tenant: core.keyed('tenant', (request) => read(request).tenant),
    everyone: core.everyone(),
  }
}

const CONSTRUCTORS = {
  concurrency: core.concurrency,
  fixedWindow: core.fixedWindow,
  gcra: core.gcra,
  leakyBucket: core.leakyBucket,
  slidingLog: core.slidingLog,
  slidingWindow: core.slidingWindow,
  tokenBucket: core.tokenBucket,
}

/** A policy as a user writes it in code. */
function optionsInCode({ limits, tiers, allow, deny, ban, ...rest }: PolicyOf, read: Read): object {
  const keys = keysOf(read)
  const inCode = (all: readonly LimitOf[]) =>
    all.map(({ algorithm, key, ...options }) => {
      const make = CONSTRUCTORS[algorithm] as (options: object) => core.Limit<never>
      return make({ ...options, ...(key && { key: keys[key] }) })
    })
  return {
    ...rest,
    key: keys.client,
    ...(limits && { limits: inCode(limits) }),
    ...(tiers && {
      tiers: Object.fromEntries(Object.entries(tiers).map(([tier, limits]) => [tier, inCode(limits)])),
      tier: (request: never) => read(request).tier,
    }),
    ...(hasReserve({ limits, tiers }) && { priority: (request: never) => read(request).priority }),
    ...(allow && { allow: core.list({ client: allow }) }),
    ...(deny && { deny: core.list({ client: deny }) }),
    ...(ban && { ban: { by: 'client', ...ban } }),
  }
}

/** The policies as a document, with names of functions for the units of a request. */
export function documentOf({ policies }: Case): object {
  const fields = policies.map((policy, p) => {
    const { times: _, limits, tiers, allow, deny, ban, ...rest } = policy
    const units = unitsOf(policy)
    return {
      ...rest,
      key: 'client',
      ...(limits && { limits: named(limits) }),
      ...(tiers && {
        tiers: Object.fromEntries(Object.entries(tiers).map(([tier, all]) => [tier, named(all)])),
        tier: 'tier',
      }),
      ...(allow && { allow: { client: allow } }),
      ...(deny && { deny: { client: deny } }),
      ...(ban && { ban: { by: 'client', ...ban } }),
      ...(units.length > 0 && { cost: Object.fromEntries(units.map((unit) => [unit, `p${p}-${unit}`])) }),
    }
  })
  return { policies: Object.fromEntries(fields.map((policy, p) => [`p${p}`, policy])) }
}

/** Windows of one length need names. */
function named(limits: readonly LimitOf[]): object[] {
  return limits.map((limit, l) => ({ name: `l${l}`, ...limit }))
}

function resolversOf({ policies }: Case, read: Read): object {
  const costs = policies.flatMap((policy, p) =>
    unitsOf(policy).map((unit) => {
      return [`p${p}-${unit}`, (request: never) => costIn(policy, read(request).cost)[unit]] as const
    }),
  )
  return {
    keys: { client: (request: never) => read(request).client, tenant: (request: never) => read(request).tenant },
    tiers: { tier: (request: never) => read(request).tier },
    costs: Object.fromEntries(costs),
  }
}

/** The policies of a case as the options of a limiter, and the function that closes them. */
export async function optionsOf(
  of: Case,
  store: core.Store,
  read: Read,
): Promise<{ options: object; close(): Promise<void> }> {
  const common = {
    store,
    ...(of.keep !== undefined && { charges: { keep: of.keep } }),
    ...(of.unavailable && { unavailable: of.unavailable }),
  }
  if (of.way === 'document') {
    const object = { version: 1, ...documentOf(of) }
    const loaded = await policies.from({ object, ...resolversOf(of, read) } as never)
    return { options: { policies: loaded, ...common }, close: () => loaded.close() }
  }
  const [policy] = of.policies as [PolicyOf]
  const cost = of.way === 'rateLimit' && { cost: (request: never) => read(request).cost }
  return { options: { name: 'p', ...optionsInCode(policy, read), ...common, ...cost }, close: async () => {} }
}

/** Requests over HTTP are no data: identities given by hand are. */
class HttpRequest {
  constructor(of: Request) {
    Object.assign(this, of)
  }
}

class Response extends EventEmitter {
  statusCode = 200
  headersSent = true
}

/** The policies of a case, without a server. */
export async function productOf(of: Case, store: core.Store): Promise<Product> {
  const { options, close } = await optionsOf(of, store, (request) => request)
  if (of.way === 'limiter') return { ...withoutHttp(options), close }
  const guard = createGuard(options as never)
  return { ...byGuard(guard as never), close, ...methodsOf(of, guard.limiter, (request) => new HttpRequest(request)) }
}

/** The methods of a limiter of requests. `make`: a request by hand. */
export function methodsOf(
  of: Case,
  limiter: core.Limiter<never>,
  make: (request: Request) => object,
): Pick<Product, 'limiter' | 'peek' | 'subject'> {
  const subject = (request: Request) => make(request) as never
  return {
    limiter,
    subject,
    peek(request, p) {
      const policy = of.policies[p] as PolicyOf
      if (of.way !== 'document') return limiter.peek(subject(request), { cost: request.cost } as never)
      const tier = `p${p}${policy.tiers ? `.${request.tier}` : ''}`
      return limiter.peek(subject(request), { cost: costIn(policy, request.cost), tier } as never)
    },
  }
}

function withoutHttp(options: object): Omit<Product, 'close'> {
  const limiter = core.createLimiter<Request>(options as never)
  const costOf = ({ cost }: Request) => ({ cost }) as never
  return {
    limiter: limiter as never,
    async request(request) {
      const verdict = await limiter.consume(request, costOf(request))
      return { proceeds: verdict.allowed, verdict, end: async () => {} }
    },
    peek: (request) => limiter.peek(request, costOf(request)),
    subject: (request) => request as never,
  }
}

function byGuard(guard: Guard<Request>): Pick<Product, 'request'> {
  return {
    async request(of) {
      const request = new HttpRequest(of)
      const response = new Response()
      const { proceed, verdict } = await guard(contextOf({ request, response: response as never }) as never)
      const end = async (status: number) => {
        response.statusCode = status
        response.emit('finish')
        // What follows is sent by then, also in several steps.
        for (let turn = 0; turn < 3; turn++) await setImmediate()
      }
      return { proceeds: proceed, verdict, end }
    },
  }
}
