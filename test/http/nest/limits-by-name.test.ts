// Runs alone: Nest finds no HttpAdapterHost or ModuleRef after some other files; which of them cause that is unknown.
import { Controller } from '@nestjs/common'
import {
  perMinute,
  perSecond,
  RateLimit,
  type RouteRateLimitOptions,
  SluiceLimiters,
  SluiceModule,
} from '@sluice/nestjs'
import { describe, expect, test } from 'vitest'
import { classOf, createNest, get, guarded, PLATFORMS } from '../support/nest.js'
import { serve } from './apps.js'

const module = () => SluiceModule.forRoot({ limits: [perMinute(2, { name: 'burst' }), perMinute(6, { name: 'long' })] })

describe.each(PLATFORMS)('limits by name on %s', (platform) => {
  async function app(own: RouteRateLimitOptions, ofClass?: RouteRateLimitOptions) {
    const Items = classOf(
      'Items',
      { list: get('list'), own: get('own', RateLimit(own)) },
      Controller(),
      ...(ofClass ? [RateLimit(ofClass)] : []),
    )
    return serve(platform, guarded({ limits: module(), controllers: [Items] }))
  }

  test('a decorator skips one limit, and the other counts on over all routes', async () => {
    const { app: nest, statuses } = await app({ limits: { burst: false } })
    expect(await statuses('/list', 3)).toEqual([200, 200, 429])
    expect(await statuses('/own', 5)).toEqual([200, 200, 200, 200, 429])
    expect(
      (await nest.get(SluiceLimiters).module?.peek({ ip: '127.0.0.1' }, { tier: 'module' }))?.limits,
    ).toMatchObject([
      { name: 'burst', remaining: 0 },
      { name: 'long', remaining: 0 },
    ])
  })

  test('a decorator overrides one limit, which counts apart from that of the module', async () => {
    const { statuses, request } = await app({ limits: { burst: perMinute(3) } })
    expect(await statuses('/list', 3)).toEqual([200, 200, 429])
    expect(await statuses('/own', 3)).toEqual([200, 200, 200])
    const refused = await request('/own')
    expect([refused.status, refused.headers.get('ratelimit-policy')]).toEqual([
      429,
      '"burst";q=3;w=60, "long";q=6;w=60',
    ])
    expect(refused.headers.get('ratelimit')).toMatch(/^"burst";r=0;t=\d+, "long";r=1;t=\d+$/)
  })

  test('that of a handler stands in place of that of its class', async () => {
    const { statuses } = await app({ name: 'own', limits: { long: false } }, { name: 'all', limits: { burst: false } })
    expect(await statuses('/list', 7)).toEqual([200, 200, 200, 200, 200, 200, 429])
    expect(await statuses('/own', 3)).toEqual([200, 200, 429])
  })
})

test.each<[string, object, RegExp]>([
  [
    'an unknown name',
    { limits: { brust: false } },
    /^RateLimit of Items-list: limits: expected .*\(burst, long\), got "brust"/,
  ],
  ['no limit left', { limits: { burst: false, long: false } }, /limits: expected one that is left \(@SkipRateLimit/],
  ['a value that is no limit', { limits: { burst: 5 } }, /limits: burst: expected false, or a limit/],
  ['a limit of another name', { limits: { burst: perSecond(1, { name: 'b' }) } }, /limits: burst: expected false, or/],
  ['another option', { limits: { burst: false }, headers: false }, /headers: expected none beside limits by name/],
  ['the name of the tier of the module', { limits: { burst: false }, name: 'module' }, /name: expected one of its own/],
])('%s is an error when the app is created', async (_what, own, message) => {
  const Items = classOf('Items', { list: get('', RateLimit(own as never)) }, Controller())
  await expect(createNest('express', guarded({ limits: module(), controllers: [Items] }))).rejects.toThrow(message)
})

test('a module without named limits has none to change', async () => {
  const Items = classOf('Items', { list: get('', RateLimit({ limits: { burst: false } })) }, Controller())
  const limits = SluiceModule.forRoot({ limit: 5, window: '1m' })
  await expect(createNest('express', guarded({ limits, controllers: [Items] }))).rejects.toThrow(
    'give its limits names',
  )
})
