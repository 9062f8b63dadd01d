import { EventEmitter } from 'node:events'
import { setImmediate } from 'node:timers/promises'
import * as core from '@sluice/core'
import { createGuard, type Guard } from '@sluice/core/http'
import { changingPolicies } from '../../support/changing-policies.js'
import { contextOf } from '../../support/context.js'
import { type Case, costIn, hasReserve, type Kind, type LimitOf, type PolicyOf, type Request, unitsOf } from './case.js'

/** What was decided on a request. */
export interface Decided {
  readonly proceeds: boolean
  readonly verdict: core.Verdict | undefined
  /** Sends the response of a request that proceeded. */
  end(status: number): Promise<unknown>
}

/** The policies of a case, as a user makes them. */
export interface Product {
  readonly limiter: core.Limiter<never>
  request(request: Request): Promise<Decided>
  peek(request: Request, policy: number): Promise<core.Verdict>
  close(): Promise<void>
  /** The identity of a client, as methods of its limiter take it. */
  subject(request: Request): never
}

const KEYS: Record<Kind, core.KeyFunction<Request>> = {
  client: core.keyed('client', ({ client }: Request) => client),
  tenant: core.keyed('tenant', ({ tenant }: Request) => tenant),
  everyone: core.everyone(),
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

/** A limit as a user writes it in code. */
function limitInCode({ algorithm, key, ...options }: LimitOf): core.Limit<Request> {
  const make = CONSTRUCTORS[algorithm] as (options: object) => core.Limit<Request>
  return make({ ...options, ...(key && { key: KEYS[key] }) })
}

function optionsInCode({ limits, tiers, allow, deny, ban, ...rest }: PolicyOf): object {
  const inCode = (all: readonly LimitOf[]) => all.map(limitInCode)
  return {
    ...rest,
    key: KEYS.client,
    ...(limits && { limits: inCode(limits) }),
    ...(tiers && {
      tiers: Object.fromEntries(Object.entries(tiers).map(([tier, limits]) => [tier, inCode(limits)])),
      tier: ({ tier }: Request) => tier,
    }),
    ...(hasReserve({ limits, tiers }) && { priority: ({ priority }: Request) => priority }),
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

function resolversOf({ policies }: Case): object {
  const costs = policies.flatMap((policy, p) =>
    unitsOf(policy).map((unit) => [`p${p}-${unit}`, ({ cost }: Request) => costIn(policy, cost)[unit]] as const),
  )
  return {
    keys: { client: ({ client }: Request) => client, tenant: ({ tenant }: Request) => tenant },
    tiers: { tier: ({ tier }: Request) => tier },
    costs: Object.fromEntries(costs),
  }
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

export async function productOf(of: Case, store: core.Store): Promise<Product> {
  const charges = of.keep === undefined ? {} : { charges: { keep: of.keep } }
  const [policy] = of.policies as [PolicyOf]
  if (of.way === 'limiter') return withoutHttp({ name: 'p', store, ...optionsInCode(policy), ...charges })
  if (of.way === 'rateLimit') {
    const cost = ({ cost }: Request) => cost
    return overHttp(createGuard({ name: 'p', store, ...optionsInCode(policy), ...charges, cost } as never))
  }
  const { guard, loaded } = await changingPolicies(documentOf(of), { store, policies: resolversOf(of), guard: charges })
  return { ...overHttp(guard as never, of.policies), close: () => loaded.close() }
}

function withoutHttp(options: object): Product {
  const limiter = core.createLimiter<Request>(options as never)
  const costOf = ({ cost }: Request) => ({ cost }) as never
  return {
    limiter: limiter as never,
    async request(request) {
      const verdict = await limiter.consume(request, costOf(request))
      return { proceeds: verdict.allowed, verdict, end: async () => {} }
    },
    close: async () => {},
    peek: (request) => limiter.peek(request, costOf(request)),
    subject: (request) => request as never,
  }
}

/** `policies`: those of a document. */
function overHttp(guard: Guard<Request>, policies?: readonly PolicyOf[]): Product {
  const { limiter } = guard
  return {
    limiter: limiter as never,
    close: async () => {},
    async request(of) {
      const request = new HttpRequest(of)
      const response = new Response()
      const { proceed, verdict } = await guard(contextOf({ request, response: response as never }) as never)
      const end = async (status: number) => {
        response.statusCode = status
        response.emit('finish')
        // What follows is sent by then.
        await setImmediate()
      }
      return { proceeds: proceed, verdict, end }
    },
    peek(of, p) {
      const tier = policies && `p${p}${policies[p]?.tiers ? `.${of.tier}` : ''}`
      const cost = policies ? costIn(policies[p] as PolicyOf, of.cost) : of.cost
      return limiter.peek(new HttpRequest(of) as never, { cost, ...(tier && { tier }) } as never)
    },
    subject: (of) => new HttpRequest(of) as never,
  }
}
