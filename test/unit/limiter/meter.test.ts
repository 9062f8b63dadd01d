import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ReadableStream } from 'node:stream/web'
import {
  createLimiter,
  fixedWindow,
  gcra,
  type Limit,
  type Limiter,
  list,
  type Meter,
  memoryStore,
  perMinute,
  SluiceError,
  slidingLog,
  slidingWindow,
  tokenBucket,
  type Verdict,
} from '@sluice/core'
import { describe, expect, test } from 'vitest'
import { Clock } from '../../contract/store-under-test.js'
import { withMethod } from '../../support/with-method.js'

const LIMITS: Record<string, Limit<string>> = {
  'a fixed window': fixedWindow({ unit: 'tokens', limit: 1000, window: '1h' }),
  'a sliding window': slidingWindow({ unit: 'tokens', limit: 1000, window: '1h' }),
  'a log': slidingLog({ unit: 'tokens', limit: 1000, window: '1h' }),
  'a bucket': gcra({ unit: 'tokens', limit: 1000, window: '1h' }),
}
const limiterOf = (limit: Limit<string>) => {
  const clock = new Clock()
  const limiter = createLimiter<string>({
    name: 'chat',
    store: memoryStore({ clock: clock.read }),
    limits: [perMinute(60), limit],
  })
  const left = async () => (await limiter.peek('ann', { cost: 0 })).units.tokens?.remaining
  return { clock, limiter, left }
}
/** Adds one unit at a time until the meter stops. */
async function produce(meter: Meter, max = 100_000): Promise<number> {
  for (let n = 1; n <= max; n++) if (!(await meter.add(1))) return n
  return max
}

describe.each(Object.entries(LIMITS))('a meter of %s', (_name, limit) => {
  test('uses up the estimate first, then charges after each step, and its end charges the rest', async () => {
    const { limiter, left } = limiterOf(limit)
    const meter = (await limiter.consume('ann', { cost: { tokens: 100 } })).meter('tokens', { step: 10 })
    expect(await meter.add(100)).toBe(true)
    expect(await left()).toBe(900)
    expect(await meter.add(9)).toBe(true)
    expect(await left()).toBe(900)
    expect(await meter.add(4)).toBe(true)
    expect(await left()).toBe(887)
    await meter.add(3)
    await meter.end()
    await meter.end()
    expect([meter.used, await left()]).toEqual([116, 884])
    expect(await meter.add(50)).toBe(false)
    expect(await left()).toBe(884)
  })

  test('its end refunds an unused estimate, once', async () => {
    const { limiter, left } = limiterOf(limit)
    const verdict = await limiter.consume('ann', { cost: { tokens: 100 } })
    const meter = verdict.meter('tokens')
    await meter.add(30)
    await Promise.all([meter.end(), meter.end()])
    expect(await verdict.settle({ tokens: 0 })).toBe(false)
    expect(await left()).toBe(970)
    await limiter.refund('ann', verdict)
    expect(await left()).toBe(970)
  })

  test.each([
    [0, 1000],
    [40, 960],
    [150, 850],
    [159, 841],
    [160, 840],
    [161, 839],
    [400, 600],
  ])('settle(%i) sets the total of estimate and steps', async (total, expected) => {
    const { limiter, left } = limiterOf(limit)
    const verdict = await limiter.consume('ann', { cost: { tokens: 100 } })
    const meter = verdict.meter('tokens', { step: 10 })
    for (let n = 0; n < 21; n++) await meter.add(8)
    expect(await verdict.settle({ tokens: total })).toBe(total !== 160)
    await meter.end()
    expect([await meter.add(1), await left()]).toEqual([false, expected])
  })

  test('a refund returns estimate and steps', async () => {
    const { limiter, left } = limiterOf(limit)
    const verdict = await limiter.consume('ann', { cost: { tokens: 100 } })
    const meter = verdict.meter('tokens', { step: 10 })
    await meter.add(150)
    expect(await limiter.refund('ann', verdict)).toBe(true)
    await meter.end()
    expect(await left()).toBe(1000)
  })

  test('streams over a budget are cut within a step of it', async () => {
    const { limiter, left } = limiterOf(limit)
    const lengths = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const meter = (await limiter.consume('ann')).meter('tokens', { step: 16 })
        const length = await produce(meter)
        await meter.end()
        return length
      }),
    )
    const used = lengths.reduce((sum, length) => sum + length, 0)
    expect(used).toBeGreaterThan(1000 - 10 * 16)
    expect(used).toBeLessThanOrEqual(1000 + 10 * 16)
    expect(await left()).toBe(0)
    expect(await limiter.consume('ann')).toMatchObject({ allowed: false, reason: 'limited' })
  })
})

test('a step is no larger than the smallest capacity, and finish goes on beyond the limit', async () => {
  const { limiter, left } = limiterOf(tokenBucket({ unit: 'tokens', capacity: 5, refill: 5, every: '1h' }))
  const first = (await limiter.consume('ann')).meter('tokens', { step: 1000, onExhausted: 'finish' })
  expect(await produce(first, 500)).toBe(500)
  expect(await left()).toBe(0)
})

test.each(Object.entries(LIMITS))(
  'settling after a step without room charges exactly the total: %s',
  async (_name, limit) => {
    const { limiter, left } = limiterOf(limit)
    const rival = await limiter.consume('ann', { cost: { tokens: 700 } })
    const verdict = await limiter.consume('ann', { cost: { tokens: 100 } })
    const meter = verdict.meter('tokens', { step: 150, onExhausted: 'finish' })
    for (let n = 0; n < 10; n++) await meter.add(50)
    await limiter.refund('ann', rival)
    expect(await verdict.settle({ tokens: 500 })).toBe(true)
    expect(await left()).toBe(500)
  },
)

describe('a meter of limits that were charged differently', () => {
  const tokens = (limit: number, more: object = {}) => fixedWindow({ unit: 'tokens', limit, window: '1h', ...more })
  const limiterWith = (...limits: Limit<string>[]) => {
    const limiter = createLimiter<string>({ name: 'chat', store: memoryStore(), limits })
    const used = async () => {
      const reports = (await limiter.peek('ann', { cost: { tokens: 0 } })).limits
      return reports.map(({ limit, remaining }) => limit - remaining)
    }
    return { limiter, used }
  }

  test('ends a stream that has used up a capped estimate, within a step', async () => {
    const { limiter, used } = limiterWith(tokens(100, { estimate: 'cap' }), tokens(10_000, { name: 'day' }))
    const meter = (await limiter.consume('ann', { cost: { tokens: 500 } })).meter('tokens')
    expect(await produce(meter, 500)).toBe(164)
    expect(await used()).toEqual([100, 500])
    await meter.end()
    expect(await used()).toEqual([100, 164])
  })

  test.each([
    [30, [30, 30]],
    [200, [100, 200]],
    [500, [100, 500]],
    [700, [100, 700]],
  ])('with finish, its end leaves %i used units where they have room', async (length, expected) => {
    const { limiter, used } = limiterWith(tokens(100, { estimate: 'cap' }), tokens(10_000, { name: 'day' }))
    const verdict = await limiter.consume('ann', { cost: { tokens: 500 } })
    const meter = verdict.meter('tokens', { onExhausted: 'finish' })
    expect(await produce(meter, length)).toBe(length)
    await meter.end()
    expect(await used()).toEqual(expected)
  })

  test.each([0, 30, 164, 200, 600])('settle(%i) sets the total of each limit', async (total) => {
    const { limiter, used } = limiterWith(tokens(1000, { estimate: 'cap' }), tokens(10_000, { name: 'day' }))
    const verdict = await limiter.consume('ann', { cost: { tokens: 1500 } })
    const rival = await limiter.consume('ann', { cost: { tokens: 0 } })
    const meter = verdict.meter('tokens', { step: 10, onExhausted: 'finish' })
    await produce(meter, 1600)
    await verdict.settle({ tokens: total })
    await rival.settle({ tokens: 7 })
    expect(await used()).toEqual([total + 7, total + 7])
  })

  test('a refund returns each limit its own units', async () => {
    const { limiter, used } = limiterWith(tokens(300, { estimate: 'cap' }), tokens(10_000, { name: 'day' }))
    await limiter.consume('ann', { cost: { tokens: 200 } })
    const verdict = await limiter.consume('ann', { cost: { tokens: 0 } })
    const meter = verdict.meter('tokens', { step: 10 })
    await meter.add(50)
    await limiter.refund('ann', verdict)
    expect(await used()).toEqual([200, 200])
  })
})

describe('units that are reserved for higher priorities', () => {
  const limiterWith = (more: object = {}, options: object = {}) => {
    const limits = [fixedWindow<string>({ unit: 'tokens', limit: 100, window: '1h', reserve: 20, ...more })]
    const limiter = createLimiter<string>({ name: 'chat', store: memoryStore(), limits, ...options })
    const left = async () => (await limiter.peek('ann', { cost: { tokens: 0 }, priority: 1 })).units.tokens?.remaining
    return { limiter, left }
  }

  test.each([
    [0, 80],
    [1, 100],
  ])('are not in a capped estimate of priority %i', async (priority, cost) => {
    const { limiter } = limiterWith({ estimate: 'cap' })
    const verdict = await limiter.consume('ann', { cost: { tokens: 500 }, priority })
    expect([verdict.allowed, verdict.units.tokens?.cost]).toEqual([true, cost])
    const waited = await limiter.acquire('bob', { cost: { tokens: 500 }, priority })
    expect(waited.units.tokens?.cost).toBe(cost)
  })

  test.each([
    ['cut', 10, 90],
    ['cut', 64, 128],
    ['finish', 10, 300],
    ['finish', 64, 300],
  ] as const)('are left by a stream with %s and steps of %i', async (onExhausted, step, sent) => {
    const { limiter, left } = limiterWith()
    const meter = (await limiter.consume('ann')).meter('tokens', { step, onExhausted })
    expect(await produce(meter, 300)).toBe(sent)
    await meter.end()
    expect(await left()).toBe(20)
    expect(await limiter.consume('ann')).toMatchObject({ allowed: false, reason: 'limited' })
  })

  test.each([
    [undefined, 0.5, 50],
    [20, 0.5, 40],
  ])('and a share of the limits bound a capped estimate during an outage: reserve %o', async (reserve, share, cost) => {
    const away = () => {
      throw new SluiceError('STORE_UNAVAILABLE', 'away')
    }
    const store = withMethod(memoryStore(), 'decide', away)
    const { limiter } = limiterWith({ estimate: 'cap', reserve }, { store, unavailable: { share } })
    const verdict = await limiter.consume('ann', { cost: { tokens: 500 } })
    expect([verdict.kind, verdict.allowed, verdict.units.tokens?.cost]).toEqual(['unavailable', true, cost])
  })
})

test.each([
  ['settled', (verdict: Verdict) => verdict.settle({ tokens: 7 })],
  ['refunded', (verdict: Verdict, limiter: Limiter<string>) => limiter.refund('ann', verdict)],
])('a meter of units that are %s already charges nothing, and never goes on', async (_what, close) => {
  const { limiter, left } = limiterOf(LIMITS['a bucket'] as Limit<string>)
  const verdict = await limiter.consume('ann', { cost: { tokens: 50 } })
  await close(verdict, limiter)
  const before = await left()
  const meter = verdict.meter('tokens')
  expect(await meter.add(500)).toBe(false)
  await meter.end()
  expect(await left()).toBe(before)
})

test('a stream that finishes beyond a limit is not charged for it in a later window', async () => {
  const { clock, limiter, left } = limiterOf(fixedWindow({ unit: 'tokens', limit: 100, window: '1m' }))
  const meter = (await limiter.consume('ann')).meter('tokens', { step: 10, onExhausted: 'finish' })
  await produce(meter, 500)
  clock.now += 60_000
  await produce(meter, 35)
  await meter.end()
  expect(await left()).toBe(65)
})

test('the first step without room is one event, and a stream that goes on proceeds', async () => {
  const { limiter } = limiterOf(fixedWindow({ name: 'tokens', unit: 'tokens', limit: 20, window: '1h' }))
  const events: string[] = []
  limiter.on('refused', ({ source, limit }) => events.push(`refused: ${source}, ${limit}`))
  limiter.on('decision', ({ source, outcome }) => source === 'response' && events.push(`decision: ${outcome}`))
  const cut = (await limiter.consume('ann')).meter('tokens', { step: 8 })
  await produce(cut)
  await Promise.all([cut.add(8), cut.end()])
  expect(events).toEqual(['decision: limited', 'refused: response, tokens'])
  await limiter.reset('ann')
  const finishing = (await limiter.consume('ann')).meter('tokens', { step: 8, onExhausted: 'finish' })
  await produce(finishing, 100)
  await finishing.end()
  // It proceeds, so nothing is refused.
  expect(events.slice(2)).toEqual(['decision: limited'])
})

describe('streams of a meter', () => {
  const chunks = () => Array.from({ length: 50 }, (_, n) => `token-${n}`)
  const meterOf = async (limit: number) => {
    const { limiter, left } = limiterOf(fixedWindow({ unit: 'tokens', limit, window: '1h' }))
    return { meter: (await limiter.consume('ann', { cost: { tokens: 4 } })).meter('tokens', { step: 5 }), left }
  }

  test.each([
    ['within its limit', 100, 50, 50],
    ['beyond its limit', 20, 24, 0],
  ])('a web stream %s', async (_what, limit, length, remaining) => {
    const { meter, left } = await meterOf(limit)
    const found: string[] = []
    const source = new ReadableStream<string>({
      start(controller) {
        for (const chunk of chunks()) controller.enqueue(chunk)
        controller.close()
      },
    })
    for await (const chunk of source.pipeThrough(meter.stream(() => 1))) found.push(chunk)
    expect(found).toEqual(chunks().slice(0, length))
    expect(await left()).toBe(remaining)
  })

  test.each([
    ['within its limit', 100, 50, 50],
    ['beyond its limit', 20, 24, 0],
  ])('a stream of Node %s', async (_what, limit, length, remaining) => {
    const { meter, left } = await meterOf(limit)
    const found: string[] = []
    await pipeline(
      Readable.from(chunks()),
      meter.nodeStream(() => 1),
      async (source) => {
        for await (const chunk of source) found.push(chunk as string)
      },
    )
    expect(found).toEqual(chunks().slice(0, length))
    expect(await left()).toBe(remaining)
  })

  test('a stream that fails or is cancelled ends its meter', async () => {
    const { meter, left } = await meterOf(100)
    const failing = Readable.from(
      (function* () {
        yield 'a'
        throw new Error('on purpose')
      })(),
    )
    await expect(
      pipeline(
        failing,
        meter.nodeStream(() => 1),
        async (source) => {
          for await (const _ of source);
        },
      ),
    ).rejects.toThrow('on purpose')
    await meter.end()
    expect(await left()).toBe(99)
  })
})

test('a refused request goes on with nothing, and one that a list admits with everything', async () => {
  const limits = [fixedWindow<string>({ unit: 'tokens', limit: 5, window: '1h' })]
  const limiter = createLimiter<string>({ name: 'chat', store: memoryStore(), limits, allow: list({ key: ['vip'] }) })
  await limiter.consume('ann', { cost: { tokens: 5 } })
  expect(await (await limiter.consume('ann')).meter('tokens').add(1)).toBe(false)
  const listed = await limiter.consume('vip')
  expect(await produce(listed.meter('tokens'), 300)).toBe(300)
  expect(await listed.settle({ tokens: 300 })).toBe(false)
  await expect(listed.settle({ tokens: -1 })).rejects.toMatchObject({ code: 'INVALID_COST' })
})

test('wrong meters and amounts are errors', async () => {
  const { limiter, left } = limiterOf(LIMITS['a log'] as Limit<string>)
  const verdict = await limiter.consume('ann')
  expect(() => verdict.meter('token')).toThrow('policy "chat": meter: expected units that limits count')
  expect(() => verdict.meter('concurrent-requests')).toThrow('policy "chat": meter: expected')
  expect(() => verdict.meter('tokens', { step: 0 })).toThrow(
    'policy "chat": meter: step: expected a whole number of at least 1',
  )
  expect(() => verdict.meter('tokens', { onExhausted: 'stop' as never })).toThrow('policy "chat": meter: onExhausted')
  const meter = verdict.meter('tokens')
  expect(() => verdict.meter('tokens')).toThrow('policy "chat": meter: expected one for each unit of a verdict')
  for (const units of [-1, 0.5, Infinity, 2 ** 53, '5', undefined]) {
    await expect(meter.add(units as number)).rejects.toMatchObject({ code: 'INVALID_COST' })
  }
  await meter.end()
  expect(await left()).toBe(1000)
})

test('the rest of a stream counts in each limit that shares a log, up to its limit', async () => {
  const limits = [
    slidingLog<string>({ unit: 'tokens', limit: 2, window: '1s' }),
    slidingLog<string>({ unit: 'tokens', limit: 20, window: '1m' }),
  ]
  const limiter = createLimiter<string>({ name: 'chat', store: memoryStore({ clock: () => 0 }), limits })
  const meter = (await limiter.consume('ann', { cost: { tokens: 1 } })).meter('tokens', { onExhausted: 'finish' })
  await meter.add(15)
  await meter.end()
  const { limits: reports } = await limiter.peek('ann', { cost: { tokens: 0 } })
  expect(reports.map(({ remaining }) => remaining)).toEqual([0, 5])
})
