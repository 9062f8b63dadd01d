// @ts-check
// NestJS in plain JavaScript: a limit for every route, a route with limits of its own, and one without.
//
//   node nestjs.js
//   for i in 1 2; do curl -i localhost:3000/search; done                 # the second within a second is refused
//   curl -i localhost:3000/health                                        # never limited
import { Controller, Get, Module } from '@nestjs/common'
import { APP_GUARD, NestFactory } from '@nestjs/core'
import { perMinute, perSecond, RateLimit, SkipRateLimit, SluiceGuard, SluiceModule } from '@sluice/nestjs'

/**
 * Applies decorators to a method, as a compiler does for the syntax `@Get()`.
 *
 * @param {object} target
 * @param {string} name
 * @param {...MethodDecorator} decorators
 */
function decorate(target, name, ...decorators) {
  const descriptor = /** @type {PropertyDescriptor} */ (Object.getOwnPropertyDescriptor(target, name))
  for (const decorator of decorators) decorator(target, name, descriptor)
}

class AppController {
  hello() {
    return { hello: 'world' }
  }
  search() {
    return { found: [] }
  }
  health() {
    return { ok: true }
  }
}
const { prototype } = AppController
decorate(prototype, 'hello', Get())
// Two limits instead of that of the module, charged all or none.
decorate(prototype, 'search', Get('search'), RateLimit({ name: 'search', limits: [perSecond(1), perMinute(20)] }))
decorate(prototype, 'health', Get('health'), SkipRateLimit())
Controller()(AppController)

class AppModule {}
Module({
  // Every route, unknown paths too: 100 requests a minute per IP address.
  imports: [SluiceModule.forRoot({ name: 'all', limit: 100, window: '1m' })],
  controllers: [AppController],
  providers: [{ provide: APP_GUARD, useClass: SluiceGuard }],
})(AppModule)

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] })
await app.listen(Number(process.env.PORT ?? 3000))
console.log('ready')
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void app.close())
