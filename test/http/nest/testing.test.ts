// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { Controller, Get, UseGuards } from '@nestjs/common'
import { APP_GUARD } from '@nestjs/core'
import { Test } from '@nestjs/testing'
import { RateLimit, SluiceGuard, SluiceModule } from '@sluice/nestjs'
import request from 'supertest'
import { expect, test } from 'vitest'
import { classOf } from '../support/nest.js'

const open = { canActivate: () => true }
/** Decorators mark the function of a method: each class has its own. */
const itemsWith = (...ofMethod: unknown[]) => ({ list: [() => ['one'], Get(), ...ofMethod] as const })
const Items = () => classOf('Items', itemsWith(RateLimit({ limit: 1 })), Controller('items'))

test.each([
  ['a handler', () => Items()],
  ['a class', () => classOf('Items', itemsWith(), Controller('items'), RateLimit({ limit: 1 }))],
  ['a guard', () => classOf('Items', itemsWith(UseGuards(SluiceGuard)), Controller('items'))],
])('a test makes a controller with a limit of %s alone, and calls its methods', async (_of, make) => {
  const Made = make()
  const module = await Test.createTestingModule({ controllers: [Made] }).compile()
  expect(module.get(Made).list()).toEqual(['one'])
  await module.close()
})

test('an app of such a controller names the module that is missing, before it takes requests', async () => {
  const module = await Test.createTestingModule({ controllers: [Items()] }).compile()
  await expect(module.createNestApplication({ logger: false }).init()).rejects.toThrow(
    /^SluiceGuard: expected SluiceModule\.forRoot\(\) in the imports .*overrideGuard\(SluiceGuard\)/,
  )
})

test('a global guard without the module is the same error', async () => {
  const providers = [{ provide: APP_GUARD, useClass: SluiceGuard }]
  const controllers = [classOf('Items', itemsWith(), Controller('items'))]
  const module = await Test.createTestingModule({ controllers, providers }).compile()
  await expect(module.createNestApplication({ logger: false }).init()).rejects.toThrow(
    'expected SluiceModule.forRoot()',
  )
})

test('a test leaves limits out where it replaces the guard', async () => {
  const module = await Test.createTestingModule({ controllers: [Items()] })
    .overrideGuard(SluiceGuard)
    .useValue(open)
    .compile()
  const app = await module.createNestApplication({ logger: false }).init()
  for (let n = 0; n < 3; n++) await request(app.getHttpServer()).get('/items').expect(200)
  await app.close()
})

test('a test of a controller has its limits where it imports the module', async () => {
  const imports = [SluiceModule.forRoot({ window: '1m', limit: 5 })]
  const module = await Test.createTestingModule({ imports, controllers: [Items()] }).compile()
  const app = await module.createNestApplication({ logger: false }).init()
  await request(app.getHttpServer()).get('/items').expect(200)
  await request(app.getHttpServer()).get('/items').expect(429)
  await app.close()
})

test('a test leaves out the global guard where it replaces the provider', async () => {
  const module = await Test.createTestingModule({
    imports: [SluiceModule.forRoot({ window: '1m', limit: 1 })],
    controllers: [classOf('Items', itemsWith(), Controller('items'))],
    providers: [{ provide: APP_GUARD, useExisting: SluiceGuard }],
  })
    .overrideProvider(SluiceGuard)
    .useValue(open)
    .compile()
  const app = await module.createNestApplication({ logger: false }).init()
  for (let n = 0; n < 3; n++) await request(app.getHttpServer()).get('/items').expect(200)
  await app.close()
})
