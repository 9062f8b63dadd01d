// A handler with a limit of one request, whose refusals are responses of 429.
import 'reflect-metadata'
import assert from 'node:assert/strict'
import { Controller, Get, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { RateLimit, SluiceModule } from '@sluice/nestjs'
import { main, responsesOf } from './support.mjs'

class Items {
  list() {
    return 'done'
  }
}
const list = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(Items.prototype, 'list'))
Get()(Items.prototype, 'list', list)
RateLimit({ limit: 1, window: '1h' })(Items.prototype, 'list', list)
Controller('items')(Items)
class App {}
Module({ imports: [SluiceModule.forRoot()], controllers: [Items] })(App)

main(async () => {
  const app = await NestFactory.create(App, new ExpressAdapter(), { logger: false })
  await app.init()
  const responses = await responsesOf(app.getHttpServer(), '/items', '/items')
  assert.deepEqual(
    responses.map(({ status }) => status),
    [200, 429],
  )
  await app.close()
})
