import * as express from '@sluice/express'
import * as koa from '@sluice/koa'
import type { Request } from 'express'
import type { Context } from 'koa'
import { describe, expect, expectTypeOf, test } from 'vitest'

const { degrade, delay, gcra, perDay, queue, rateLimit, reject, shadow, tarpit, throttle } = express

describe('options of responders', () => {
  test.each<[string, () => unknown, RegExp]>([
    ['an unknown option', () => delay({ maxWait: 5 } as never), /delay: maxWait: unknown option/],
    ['a delay of NaN', () => delay({ max: Number.NaN }), /delay: max: expected whole milliseconds/],
    ['a delay from a fraction', () => delay({ from: 1.5 }), /delay: from: expected a whole number/],
    ['a step without a start', () => delay({ by: 5 }), /delay: by: expected none without from/],
    ['an invalid otherwise', () => delay({ otherwise: 429 as never }), /delay: otherwise: expected a responder/],
    [
      'a queue after a delay',
      () => delay({ otherwise: queue() }),
      /delay: otherwise: expected a responder that does not/,
    ],
    [
      'a delay after a queue',
      () => queue({ otherwise: delay() }),
      /queue: otherwise: expected a responder that does not/,
    ],
    ['an empty queue', () => queue({ size: 0 }), /queue: size: expected a whole number of at least 1/],
    ['no time to wait', () => queue({ maxWait: 0 }), /queue: maxWait: expected/],
    ['a priority of NaN', () => queue({ priority: Number.NaN }), /queue: priority: expected a finite number/],
    ['an ageEvery of 0', () => queue({ ageEvery: 0 }), /queue: ageEvery: expected/],
    ['a maxConnections of 0', () => queue({ maxConnections: 0 }), /queue: maxConnections: expected/],
    ['no rate', () => throttle({} as never), /throttle: bytesPerSecond: expected a whole number/],
    ['a rate of 0', () => throttle({ bytesPerSecond: 0 }), /throttle: bytesPerSecond: expected/],
    ['a negative start', () => throttle({ bytesPerSecond: 1, after: -1 }), /throttle: after: expected/],
    [
      'an invalid otherwise of degrade',
      () => degrade({ otherwise: null as never }),
      /degrade: otherwise: expected a responder/,
    ],
    ['no time to hold', () => tarpit({ for: '0s' }), /tarpit: for: expected/],
    ['negative maxConnections', () => tarpit({ maxConnections: -1 }), /tarpit: maxConnections: expected/],
    ['a queue in a tarpit', () => tarpit({ answer: queue() }), /tarpit: answer: expected a responder that does not/],
    ['an invalid status', () => shadow({ status: 20 }), /shadow: status: expected/],
    ['an invalid body', () => shadow({ body: 5 as never }), /shadow: body: expected/],
    ['an invalid content type', () => shadow({ contentType: 5 as never }), /shadow: contentType: expected/],
    ['headers that are not texts', () => shadow({ headers: { a: 5 } as never }), /shadow: headers: expected/],
    [
      'a maxConnections of 0 of throttle',
      () => throttle({ bytesPerSecond: 1, maxConnections: 0 }),
      /throttle: maxConnections: expected/,
    ],
    [
      'an invalid responder of a limit',
      () => perDay(1, { respond: 429 as never }),
      /slidingLog: respond: expected a responder/,
    ],
    [
      'an unknown mode',
      () => rateLimit({ limit: 1, window: 1, enforce: { mode: 'dry' as never } }),
      /mode: expected "enforce" or "report"/,
    ],
    [
      'a percentage above 100',
      () => rateLimit({ limit: 1, window: 1, enforce: { percent: 101 } }),
      /enforce: percent: expected a number/,
    ],
    [
      'a percentage of NaN',
      () => rateLimit({ limit: 1, window: 1, enforce: { percent: Number.NaN } }),
      /enforce: percent/,
    ],
    [
      'a percentage in report mode',
      () => rateLimit({ limit: 1, window: 1, enforce: { mode: 'report', percent: 5 } }),
      /enforce: percent: expected none beside mode "report"/,
    ],
    [
      'a salt without a percentage',
      () => rateLimit({ limit: 1, window: 1, enforce: { salt: 'x' } }),
      /enforce: salt: expected none without percent/,
    ],
    [
      'an empty salt',
      () => rateLimit({ limit: 1, window: 1, enforce: { percent: 5, salt: '' } }),
      /enforce: salt: expected a string of 1 character or more$/,
    ],
    [
      'headers in words',
      () => rateLimit({ limit: 1, window: 1, enforce: { headers: 'yes' as never } }),
      /enforce: headers/,
    ],
    [
      'an onVerdict that is not a function',
      () => rateLimit({ limit: 1, window: 1, onVerdict: 5 as never }),
      /onVerdict: expected a fun/,
    ],
  ])('a responder or limiter rejects %s when it is made', (_what, make, message) => {
    expect(make).toThrow(expect.objectContaining({ code: 'INVALID_POLICY', message: expect.stringMatching(message) }))
  })
})

test('functions of responders receive the framework’s own request', () => {
  rateLimit({
    limit: 1,
    window: 1,
    respond: queue({
      priority: (req, context) => {
        expectTypeOf(req).toEqualTypeOf<Request>()
        expectTypeOf(context.request).toEqualTypeOf<Request>()
        return 1
      },
      otherwise: shadow({ body: (req) => ({ path: req.path }), headers: (req) => ({ 'X-Path': req.path }) }),
    }),
    onVerdict: (req, verdict) => {
      expectTypeOf(req).toEqualTypeOf<Request>()
      expectTypeOf(verdict.degraded).toEqualTypeOf<boolean>()
    },
  })
  koa.rateLimit({
    limits: [
      gcra({ limit: 1, window: 1, respond: delay() }),
      perDay<Context>(1, { respond: reject({ body: (ctx) => ctx.path }) }),
    ],
    respond: queue({ priority: async (ctx) => ctx.state.rank }),
  })
})
