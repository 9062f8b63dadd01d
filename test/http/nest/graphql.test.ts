// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { EventEmitter } from 'node:events'
import { type ExecutionContext, type INestApplication, SetMetadata } from '@nestjs/common'
import { ExternalContextCreator } from '@nestjs/core'
import {
  byUser,
  executionContextOf,
  keyed,
  perMinute,
  RateLimit,
  RateLimitException,
  reject,
  SluiceModule,
  type SluiceModuleOptions,
} from '@sluice/nestjs'
import { describe, expect, test } from 'vitest'
import { classOf, guarded, loggedDuring, PLATFORMS, type Platform } from '../support/nest.js'
import { serve } from './apps.js'

type Field = (root: unknown, args: object, context: unknown, info: object) => Promise<unknown>

/** Calls a field as `@nestjs/graphql` does, by Nest's own creator of contexts: once for each alias of a query. */
function fieldOf(app: INestApplication, resolver: object, name: string): Field {
  const method = (resolver as Record<string, (...args: unknown[]) => unknown>)[name] as (...args: unknown[]) => unknown
  const guardsAlone = { interceptors: false, guards: true, filters: false }
  const creator = app.get(ExternalContextCreator)
  return creator.create(
    resolver as never,
    method,
    name,
    undefined,
    undefined,
    undefined,
    undefined,
    guardsAlone,
    'graphql',
  ) as Field
}

const query = SetMetadata('graphql:resolver_type', 'Query')

/** The aliases of the field `login` in a query, by the accounts that they name. */
interface Query {
  readonly accounts: readonly string[]
}

/** An app with `POST /graphql`, which responds with the results of a query's fields. `contextOf` is that of GraphQLModule. */
async function graphql(
  platform: Platform,
  options: SluiceModuleOptions,
  own?: Parameters<typeof RateLimit>[0],
  contextOf: (req: object, res: object) => object = (req, res) => ({ req, res }),
) {
  const Login = classOf('Login', { login: [() => 'welcome', query, ...(own ? [RateLimit(own)] : [])] })
  const module = guarded({ limits: SluiceModule.forRoot(options), providers: [Login] })
  let app: INestApplication
  const results = async (accounts: readonly string[], req: object, res: object) => {
    const login = fieldOf(app, app.get(Login), 'login')
    const settled = await Promise.allSettled(accounts.map((account) => login({}, { account }, contextOf(req, res), {})))
    return settled.map((result) => (result.status === 'fulfilled' ? result.value : shown(result.reason)))
  }
  const served = await serve(platform, module, (made) => {
    app = made
    const instance = made.getHttpAdapter().getInstance()
    if (platform === 'fastify') {
      instance.post('/graphql', (request: { body: Query }, reply: object) =>
        results(request.body.accounts, request, reply),
      )
    } else {
      made.use('/graphql', async (req: { query: Record<string, string> }, res: { json(body: unknown): void }) => {
        res.json(await results((req.query.accounts ?? '').split(','), req, res))
      })
    }
  })
  return async (...accounts: string[]): Promise<{ results: unknown; headers: Headers }> => {
    const response = await served.request(`/graphql?accounts=${accounts}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ accounts }),
    })
    return { results: await response.json(), headers: response.headers }
  }
}

function shown(error: unknown): unknown {
  // GraphQL sends the extensions.
  if (error instanceof RateLimitException) return { ...(error as { extensions?: object }).extensions }
  return (error as Error).message
}

const REFUSED = { code: 'TOO_MANY_REQUESTS', retryAfter: 60 }

describe.each(PLATFORMS)('GraphQL on %s', (platform) => {
  test('each alias of a field is charged, once, and a refused one is an error of this field', async () => {
    const ask = await graphql(platform, { limit: 3, window: '1m', respond: reject({ body: 'slow down' }) })
    const { results, headers } = await ask('ann', 'ann', 'ann', 'ann', 'ann')
    expect(results).toEqual(['welcome', 'welcome', 'welcome', REFUSED, REFUSED])
    expect([...headers.keys()].filter((name) => /ratelimit|retry-after/.test(name))).toEqual([])
  })

  test.each(['reject', 'pass'] as const)(
    'with onInvalid %s, a field without a key is a bad request',
    async (onInvalid) => {
      const options = { limit: 1, window: '1m', key: byUser(() => undefined), onInvalid } as const
      expect((await (await graphql(platform, options))('ann')).results).toEqual([{ code: 'BAD_REQUEST' }])
    },
  )

  test('a refusal is one, even if a responder of your own replies with a success', async () => {
    const respond = () => ({ status: 200, headers: [], body: 'welcome', showsQuota: false })
    const ask = await graphql(platform, { limit: 1, window: '1m', respond })
    expect((await ask('ann', 'ann')).results).toEqual(['welcome', REFUSED])
  })

  test('fields of one query cause no warning about a limiter that runs twice', async () => {
    const codes: unknown[] = []
    const note = (warning: Error & { code?: string }) => void codes.push(warning.code)
    process.on('warning', note)
    await (await graphql(platform, { limit: 3, window: '1m' }))('ann', 'bob')
    // Warnings are emitted in the next tick.
    await new Promise(setImmediate)
    process.removeListener('warning', note)
    expect(codes).not.toContain('SLUICE_SAME_LIMITER_TWICE')
  })

  test('a key may read the arguments of a field', async () => {
    const account = keyed('account', (_request, context) => {
      const execution = context && (executionContextOf(context) as ExecutionContext)
      return String(execution?.getArgByIndex(1).account)
    })
    const ask = await graphql(platform, {}, { limits: [perMinute(1)], key: account })
    expect((await ask('ann', 'bob', 'ann')).results).toEqual(['welcome', 'welcome', REFUSED])
  })

  test('the reply alone, or the request with its response, is enough of a context', async () => {
    const contextOf = (req: object, res: object) => (platform === 'fastify' ? { reply: res } : { req })
    const ask = await graphql(platform, { limit: 1, window: '1m' }, undefined, contextOf)
    expect((await ask('ann', 'ann')).results).toEqual(['welcome', REFUSED])
  })

  test('a context without the request is an error, whose remedy is in the log and not in the response', async () => {
    const ask = await graphql(platform, { limit: 1, window: '1m' }, undefined, () => ({}))
    const { result, logged } = await loggedDuring(async () => (await ask('ann')).results)
    expect(result).toEqual(['Internal Server Error'])
    expect(logged).toEqual([
      expect.stringMatching(/SluiceGuard: expected a GraphQL context with the request of Express as req/),
    ])
  })
})

test('a subscription over a WebSocket is charged to the address of the handshake', async () => {
  let app: INestApplication | undefined
  const News = classOf('News', { added: [() => 'subscribed', query, RateLimit({ limit: 1, window: '1m' })] })
  await serve('express', guarded({ limits: SluiceModule.forRoot(), providers: [News] }), (made) => {
    app = made
  })
  const added = fieldOf(app as INestApplication, (app as INestApplication).get(News), 'added')
  const subscribe = (remoteAddress: string) => {
    const extra = { request: { headers: {}, socket: { remoteAddress } }, socket: new EventEmitter() }
    return added({}, {}, { req: { connectionParams: {}, extra } }, {}).catch(shown)
  }
  expect([await subscribe('203.0.113.1'), await subscribe('203.0.113.1'), await subscribe('203.0.113.2')]).toEqual([
    'subscribed',
    REFUSED,
    'subscribed',
  ])
})
