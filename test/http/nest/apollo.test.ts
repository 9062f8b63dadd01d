// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { ApolloDriver } from '@nestjs/apollo'
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql'
import { byUser, RateLimit, type RouteRateLimitOptions, SluiceModule } from '@sluice/nestjs'
import { expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'
import { classOf, guarded } from '../support/nest.js'
import { serve } from './apps.js'

/** An app with GraphQL by Apollo's driver. Its queries resolve to the errors of each query's fields. */
async function apollo(own: RouteRateLimitOptions) {
  const Login = classOf('Login', { login: [() => 'welcome', Query('login'), RateLimit(own)] }, Resolver())
  const graphql = GraphQLModule.forRoot({ driver: ApolloDriver, typeDefs: 'type Query { login: String }' })
  const { request } = await serve(
    'express',
    guarded({ limits: SluiceModule.forRoot(), imports: [graphql], providers: [Login] }),
  )
  return async (query: string) => {
    const body = JSON.stringify({ query })
    const response = await request('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    })
    const { errors = [] } = (await response.json()) as {
      errors?: readonly { message: string; extensions: Record<string, unknown> }[]
    }
    // Apollo adds the stack where NODE_ENV is not production.
    return errors.map(({ message, extensions: { stacktrace: _, ...extensions } }) => ({ message, extensions }))
  }
}

test('a refused field has the code TOO_MANY_REQUESTS and the time to wait', async () => {
  const ask = await apollo({ limit: 2, window: '1m' })
  expect(await ask('{ a: login, b: login }')).toEqual([])
  expect(await ask('{ login }')).toEqual([
    { message: 'Too Many Requests', extensions: { code: 'TOO_MANY_REQUESTS', retryAfter: expect.any(Number) } },
  ])
})

test('a field without a key has the code of Apollo for it', async () => {
  const ask = await apollo({ limit: 2, window: '1m', key: byUser(() => undefined, { challenge: 'Bearer' }) })
  expect(await ask('{ login }')).toMatchObject([{ message: 'Unauthorized', extensions: { code: 'UNAUTHENTICATED' } }])
})

test('a thousand fields of a few queries from one address are no reason for the warning of one client', async () => {
  const ask = await apollo({ limit: 10_000, window: '1m' })
  const fields = Array.from({ length: 600 }, (_, n) => `f${n}: login`).join(' ')
  const warnings = await warningsDuring(async () => {
    for (let n = 0; n < 2; n++) expect(await ask(`{ ${fields} }`)).toEqual([])
  })
  expect(warnings).toEqual([])
})

test('a thousand queries from one address are', async () => {
  const ask = await apollo({ limit: 10_000, window: '1m' })
  const warnings = await warningsDuring(async () => {
    for (let n = 0; n < 10; n++) await Promise.all(Array.from({ length: 100 }, () => ask('{ a: login, b: login }')))
  })
  expect(warnings).toMatchObject([{ code: 'SLUICE_ONE_CLIENT' }])
})
