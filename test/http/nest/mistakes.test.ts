// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { Controller, Get, Injectable, Module, Scope, SetMetadata, type Type } from '@nestjs/common'
import { APP_GUARD, HttpAdapterHost } from '@nestjs/core'
import {
  concurrency,
  createLimiter,
  degrade,
  escalate,
  memoryStore,
  queue,
  RateLimit,
  rateLimitGuard,
  reject,
  SkipRateLimit,
  SluiceGuard,
  SluiceModule,
  type SluiceModuleOptions,
  shadow,
} from '@sluice/nestjs'
import { expect, test } from 'vitest'
import { allWarningsDuring } from '../../support/process-events.js'
import { classOf, createNest, get, guarded } from '../support/nest.js'

const minute = { limit: 1, window: '1m' } as const

/** Creates and initialises an app, and returns the message of the error. */
async function mistakeIn(makeModule: () => Type): Promise<string> {
  try {
    const app = await createNest('express', makeModule())
    await app.init()
    await app.close()
  } catch (error) {
    return (error as Error).message
  }
  return 'none'
}

const mistakeOf = (options: SluiceModuleOptions, ...controllers: Type[]) =>
  mistakeIn(() => guarded({ limits: SluiceModule.forRoot(options), controllers }))

const handler = (...decorators: unknown[]) => classOf('Items', { list: get('', ...decorators) }, Controller())

/** Handlers as the packages for GraphQL, gateways and microservices mark them. */
const field = SetMetadata('graphql:resolver_type', 'Query')
const message = SetMetadata('websockets:message_mapping', true)
const event = SetMetadata('microservices:handler_type', 2)

test('options of the module that do not exist, or that do not fit, are errors when the app is created', async () => {
  expect(await mistakeOf({ limti: 5 } as never)).toMatch(/^SluiceModule: limti: unknown option/)
  expect(await mistakeOf({ limit: 5, windw: '1m' } as never)).toMatch(/windw: unknown option/)
  expect(await mistakeOf({ limit: 5 })).toMatch(/window: expected/)
  expect(await mistakeOf({ ...minute, unknownPaths: 'no' as never })).toMatch('unknownPaths: expected true or false')
  expect(await mistakeOf({ ...minute, socketAddress: 'ip' as never })).toMatch('socketAddress: expected a function')
})

test('options of the module that are made in no way, in two, or by a class without the method, are an error', async () => {
  const one = 'forRootAsync: expected one of useFactory (a function), useClass (a class) and useExisting (a token)'
  class Settings {}
  for (const given of [undefined, {}, { useFactory: 5 }, { useClass: {} }, { useFactory() {}, useClass: Settings }]) {
    expect(() => SluiceModule.forRootAsync(given as never)).toThrow(one)
  }
  const limits = SluiceModule.forRootAsync({ useClass: Settings as never })
  expect(await mistakeIn(() => guarded({ limits }))).toMatch(/expected a class with the method createSluiceOptions\(\)/)
})

test.each([[5], [[]], [() => minute], [null]])(
  'options of the module that are no object, such as %o, are an error',
  async (value) => {
    const expected = /^SluiceModule: expected an object of options/
    expect(await mistakeOf(value as never)).toMatch(expected)
    const limits = () => SluiceModule.forRootAsync({ useFactory: async () => value as never })
    expect(await mistakeIn(() => guarded({ limits: limits() }))).toMatch(expected)
  },
)

test('a factory of options that forgets its return is an error', async () => {
  const limits = SluiceModule.forRootAsync({ useFactory: () => undefined as never })
  expect(await mistakeIn(() => guarded({ limits }))).toMatch(/^SluiceModule: expected an object of options/)
})

test.each(['of the app', 'of a decorator'])(
  'options that are made for each request are an error, with a guard %s',
  async (guard) => {
    class Tenant {}
    Injectable({ scope: Scope.REQUEST })(Tenant)
    class Tenants {}
    Module({ providers: [Tenant], exports: [Tenant] })(Tenants)
    const limits = SluiceModule.forRootAsync({ imports: [Tenants], inject: [Tenant], useFactory: () => minute })
    const ofApp = { provide: APP_GUARD, scope: Scope.REQUEST, useClass: SluiceGuard }
    class App {}
    Module({
      imports: [limits],
      controllers: [handler(RateLimit(minute))],
      providers: guard === 'of the app' ? [ofApp] : [],
    })(App)
    expect(await mistakeIn(() => App)).toMatch(
      /^SluiceModule\.forRootAsync: inject: expected providers that live as long as the app, .* limit and key may be functions/,
    )
  },
)

test('a method that a subclass overrides is no handler, and its decorators do not count', async () => {
  const Base = classOf('Base', { list: get('items', RateLimit({ name: 'list', limit: 5 })) })
  class Items extends Base {
    list() {
      return 'mine'
    }
  }
  const list = Object.getOwnPropertyDescriptor(Items.prototype, 'list') as PropertyDescriptor
  Get('items')(Items.prototype, 'list', list)
  RateLimit({ name: 'list', ...minute })(Items.prototype, 'list', list)
  Controller()(Items)
  expect(await mistakeOf({}, Items)).toBe('none')
})

test('apps that are made in turn, as by tests, cause no warning about limiters for each request', async () => {
  const list = () => handler(RateLimit({ limit: 7001, window: '1m' }))
  const warnings = await allWarningsDuring(async () => {
    await createLimiter(minute).consume('ann')
    for (let n = 0; n < 4; n++) expect(await mistakeOf({ limit: 7000, window: '1m' }, list())).toBe('none')
  })
  // Files share a process, and any of them may make its hundredth limiter.
  expect(warnings.filter(({ message }) => message.includes('with the same limits'))).toEqual([])
})

test('options of a decorator that do not exist, or that do not fit, are errors when the app is created', async () => {
  expect(await mistakeOf({}, handler(RateLimit({ limt: 5 } as never)))).toMatch(/limt: unknown option/)
  expect(await mistakeOf({}, handler(RateLimit({ limit: 5 })))).toBe(
    'RateLimit of Items-list: limit: expected a window beside it',
  )
  expect(await mistakeOf({ limits: [] as never }, handler(RateLimit({ limit: 5 })))).toMatch(/limits: expected/)
  const twice = [RateLimit({ ...minute, name: 'login' }), RateLimit({ ...minute, name: 'login' })]
  const both = classOf('Users', { a: get('a', twice[0]), b: get('b', twice[1]) }, Controller())
  expect(await mistakeOf({}, both)).toMatch(/^RateLimit of Users-b: name: expected one of its own, as another limiter/)
})

test('a decorator without options, on no method, or beside another is an error where the class is defined', () => {
  expect(() => RateLimit(undefined as never)).toThrow('RateLimit: expected an object of options')
  expect(() => handler(RateLimit(minute), RateLimit(minute))).toThrow('RateLimit of Items-list: expected one')
  expect(() => handler(RateLimit(minute), SkipRateLimit())).toThrow('RateLimit of Items-list: expected one')
  expect(() => RateLimit(minute)({}, 'field', {})).toThrow('RateLimit of Object-field: expected a class or a method')
})

test('a call of a guard without its options is an error', () => {
  expect(() => rateLimitGuard({} as never)).toThrow('limit: expected a limit and a window')
  expect(() => (rateLimitGuard as (...args: unknown[]) => unknown)({}, {}, () => {})).toThrow('rateLimitGuard({')
})

test('a module that an app has twice is an error', async () => {
  class Part {}
  Module({ imports: [SluiceModule.forRoot({ limit: 2, window: '1m' })] })(Part)
  class App {}
  Module({ imports: [SluiceModule.forRoot(minute), Part] })(App)
  const app = await createNest('express', App)
  await expect(app.init()).rejects.toThrow('SluiceModule: expected it in the imports of one module')
  await app.close()
})

test('a platform that tells no addresses is an error', async () => {
  const app = await createNest('express', guarded({ limits: SluiceModule.forRoot(minute) }))
  app.get(HttpAdapterHost).httpAdapter.getType = () => 'bare'
  await expect(app.init()).rejects.toThrow('expected the platform express or fastify, got "bare"')
  await app.close()
})

test('a limit of a microservice is an error', async () => {
  const Jobs = classOf('Jobs', { run: [() => 'done', event, RateLimit(minute)] }, Controller())
  const expected = /^RateLimit of Jobs-run: expected a handler of HTTP, GraphQL or WebSockets, got one of microservices/
  expect(await mistakeOf({}, Jobs)).toMatch(expected)
  const Mixed = classOf('Jobs', { list: get(''), run: [() => 'done', event] }, Controller(), RateLimit(minute))
  expect(await mistakeOf({}, Mixed)).toMatch(expected)
  // Not where the decorator is missing: guards of the app are none of microservices.
  expect(await mistakeOf(minute, classOf('Jobs', { run: [() => 'done', event] }, Controller()))).toBe('none')
})

test.each([
  ['count', { count: { only: 'failure' } }],
  ['body', { body: { max: 1000 } }],
] as const)('%s is an error for GraphQL fields and messages, of a decorator and of the module', async (option, own) => {
  for (const [mark, of] of [
    [field, 'a GraphQL field'],
    [message, 'messages'],
  ] as const) {
    const limited = classOf('Login', { login: [() => 'done', mark, RateLimit({ ...minute, ...own })] }, Controller())
    const message = `policy "Login-login": ${option}: expected none for ${of}`
    expect(await mistakeOf({}, limited)).toMatch(message)
    const plain = classOf('Login', { login: [() => 'done', mark] }, Controller())
    expect(await mistakeOf({ ...minute, ...own }, plain)).toMatch(
      `policy "default": ${option}: expected none for ${of}`,
    )
    const skipped = classOf('Login', { login: [() => 'done', mark, SkipRateLimit()] }, Controller())
    expect(await mistakeOf({ ...minute, ...own }, skipped)).toBe('none')
  }
})

test('requests in flight and bytes are errors for messages', async () => {
  const of = (options: object) =>
    classOf('Chat', { say: [() => 'done', message, RateLimit(options as never)] }, Controller())
  expect(await mistakeOf({}, of({ limits: [concurrency({ limit: 1 })] }))).toMatch(
    'concurrency: expected none for messages',
  )
  const bytes = {
    ...minute,
    store: memoryStore(),
    ban: { by: 'ip', after: 3, within: '1h', for: ['1h'], count: { only: 401 } },
  }
  expect(await mistakeOf({}, of(bytes))).toMatch('ban: count: expected none for messages')
})

test('an apparent success is an error for GraphQL fields and messages, as no reply of theirs could look like one', async () => {
  const ban = { by: 'ip', after: 3, within: '1h', for: ['1h'], respond: escalate([reject(), shadow()]) } as const
  for (const own of [
    { respond: shadow() },
    { respond: queue({ otherwise: shadow() }) },
    { store: memoryStore(), ban },
  ]) {
    for (const [mark, of] of [
      [field, 'a GraphQL field'],
      [message, 'messages'],
    ] as const) {
      const limited = classOf('Login', { login: [() => 'done', mark, RateLimit({ ...minute, ...own })] }, Controller())
      expect(await mistakeOf({}, limited)).toMatch(`policy "Login-login": respond: expected no shadow() for ${of}`)
    }
  }
})

test('degrade() is an error for messages, whose handlers see no verdict', async () => {
  const options = { ...minute, respond: degrade() }
  const Chat = classOf('Chat', { say: [() => 'done', message] }, Controller())
  expect(await mistakeOf(options, Chat)).toMatch('policy "default": respond: expected no degrade() for messages')
  // The request of a GraphQL field has the verdict.
  expect(await mistakeOf(options, classOf('Login', { login: [() => 'done', field] }, Controller()))).toBe('none')
})

test('policies without a name of classes that a minifier has named cause one warning', async () => {
  const options = () => RateLimit({ limit: 7002, window: '1m' })
  const named = (name: string, ...own: unknown[]) => classOf(name, { list: get('', ...own) }, Controller())
  const warningsOf = async (...controllers: Type[]) => {
    const warnings = await allWarningsDuring(async () => expect(await mistakeOf({}, ...controllers)).toBe('none'))
    return warnings.filter((warning) => (warning as { code?: unknown }).code === 'SLUICE_MINIFIED_NAME')
  }
  expect(
    await warningsOf(named('o', RateLimit({ name: 'own', limit: 1, window: '1m' })), named('Api', options())),
  ).toEqual([])
  const warnings = await warningsOf(named('o', options()), named('kDe', options()))
  expect(warnings.map(({ message }) => message)).toEqual([expect.stringMatching(/^RateLimit of o-list: .* a name/)])
})
