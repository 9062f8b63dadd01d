import { createLimiter, type Logger, type LoggingOptions, memoryStore, slidingLog, startLogging } from '@sluice/core'
import { afterEach, expect, test } from 'vitest'
import { warningsDuring } from '../../support/process-events.js'
import { until } from '../../support/until.js'

const stops: (() => void)[] = []
afterEach(() => {
  for (const stop of stops.splice(0)) stop()
})

interface Written {
  readonly level: string
  readonly message: string
  readonly [field: string]: unknown
}

/** Logs into a list; `lines(event)` returns those of one event. */
function logged(options: Omit<LoggingOptions, 'logger'> = {}) {
  const written: Written[] = []
  const write = (level: string) => (fields: object, message: string) => void written.push({ level, message, ...fields })
  const logger: Logger = { info: write('info'), warn: write('warn') }
  const stop = startLogging({ logger, ...options })
  stops.push(stop)
  return { written, stop, lines: (event: string) => written.filter((line) => line.event === event) }
}

let names = 0
const limiterOf = (window: '100ms' | '1h' = '1h', more: object = {}) =>
  createLimiter({ name: `log-${names++}`, limits: [slidingLog({ limit: 1, window })], ...more })

test('the first refusal of a client in a window is logged with hashed keys', async () => {
  const { lines } = logged()
  const limiter = limiterOf()
  for (const key of ['ann', 'ann', 'ann', 'bob', 'bob', 'ann']) await limiter.consume(key)
  const common = { level: 'info', policy: limiter.name, outcome: 'limited', limit: limiter.name, source: 'store' }
  const message = `sluice: ${limiter.name} refuses: limited by ${limiter.name}`
  expect(lines('refused')).toMatchObject([
    { ...common, message },
    { ...common, message },
  ])
  const [ann, bob] = lines('refused').map(({ keys }) => (keys as string[])[0])
  expect(ann).toMatch(/^key:[\w-]{16}$/)
  expect(bob).toMatch(/^key:[\w-]{16}$/)
  expect(ann).not.toBe(bob)
  expect(JSON.stringify(lines('refused'))).not.toContain('ann')
})

test('a client refused again in a later window is logged again', async () => {
  const { lines } = logged()
  const limiter = limiterOf('100ms')
  await until('there are two lines', async () => {
    await limiter.consume('ann')
    return lines('refused').length === 2
  })
})

test('keys hash alike with one secret and differ with another', async () => {
  const secret = 'of sixteen characters or more'
  const logs = [logged({ secret }), logged({ secret }), logged(), logged({ secret: `${secret}!` })]
  const limiter = limiterOf()
  for (let n = 0; n < 2; n++) await limiter.consume('ann')
  const [one, same, ...others] = logs.map(({ lines }) => (lines('refused')[0] as Written).keys)
  expect(same).toEqual(one)
  expect(new Set([one, ...others].map(String)).size).toBe(3)
})

test('keys can be logged in plain text or left out', async () => {
  const [plain, none] = [logged({ keys: 'plain' }), logged({ keys: 'none' })]
  const limiter = limiterOf()
  for (let n = 0; n < 2; n++) await limiter.consume('ann\nsluice: forged')
  expect(plain.lines('refused')[0]?.keys).toEqual(['key:ann\nsluice: forged'])
  expect(none.lines('refused')[0]?.keys).toEqual(['key'])
  // A client's text is in fields, which loggers escape, and never in the message.
  expect(plain.lines('refused')[0]?.message).not.toContain('forged')
})

test('a flood writes linesPerSecond lines, and one with the number left out', async () => {
  const { lines } = logged({ linesPerSecond: 2 })
  const limiter = limiterOf()
  // In one turn of the event loop, so within one second.
  const consumed = Array.from({ length: 10 }, (_, n) => [limiter.consume(`key ${n}`), limiter.consume(`key ${n}`)])
  await Promise.all(consumed.flat())
  expect(lines('refused')).toHaveLength(2)
  await until('the second is over', () => lines('lines-left-out').length > 0)
  expect(lines('lines-left-out')).toMatchObject([{ level: 'warn', of: 'refused', lines: 8 }])
  // A refusal that was left out is logged once there is room.
  await limiter.consume('key 9')
  expect(lines('refused')).toHaveLength(3)
})

test('bans, blocks and their ends are logged, and a refusal by them once', async () => {
  const { written } = logged({ keys: 'plain' })
  const store = memoryStore()
  const limiter = limiterOf('1h', { store, ban: { after: 1, within: '1h', for: ['1h'] } })
  for (let n = 0; n < 5; n++) await limiter.consume('ann')
  await limiter.block('eve', { for: '1h', reason: 'spam' })
  for (let n = 0; n < 3; n++) await limiter.consume('eve')
  await limiter.unblock('eve')
  expect(written.map(({ level, event, outcome, key, keys }) => [level, event, outcome ?? key, keys])).toEqual([
    ['warn', 'ban', 'key:ann', undefined],
    ['info', 'refused', 'banned', ['key:ann']],
    ['info', 'block', 'key:eve', undefined],
    ['info', 'refused', 'blocked', ['key:eve']],
    ['info', 'unblock', 'key:eve', undefined],
  ])
})

test('a warning of the process is logged', async () => {
  const { lines } = logged()
  const store = memoryStore()
  const seen = await warningsDuring(async () => {
    for (let n = 0; n < 2; n++) createLimiter({ limit: 1, window: '1h', store })
  })
  expect(seen).toMatchObject([{ code: 'SLUICE_SAME_NAME' }])
  expect(lines('warning')).toMatchObject([{ level: 'warn', code: 'SLUICE_SAME_NAME' }])
})

test('after stop() nothing is logged, and a second stop() does nothing', async () => {
  const { written, stop } = logged()
  stop()
  stop()
  const limiter = limiterOf()
  for (let n = 0; n < 2; n++) await limiter.consume('ann')
  expect(written).toEqual([])
})

test('a logger that throws or rejects changes no decision', async () => {
  const fail = () => {
    throw new Error('disk full')
  }
  stops.push(startLogging({ logger: { info: fail, warn: fail } }))
  const limiter = limiterOf()
  const seen = await warningsDuring(async () => {
    for (const key of ['ann', 'ann', 'bob', 'bob']) await limiter.consume(key)
  })
  expect(seen).toMatchObject([
    { code: 'SLUICE_LISTENER_FAILED', message: 'startLogging: listener of "line": disk full' },
  ])
})

test('startLogging rejects wrong options, and its errors do not show the secret', () => {
  const logger = { info() {}, warn() {} }
  const start = (options: object) => () => startLogging(options as LoggingOptions)
  expect(start({})).toThrow(/startLogging: logger: expected an object with info\(\) and warn\(\)/)
  expect(start({ logger: { info() {} } })).toThrow(/logger: expected/)
  expect(start({ logger, keys: 'sha1' })).toThrow(/keys: expected "hmac" or "plain" or "none"/)
  expect(start({ logger, secret: 'short one' })).toThrow(/^(?!.*short one).*secret: expected a string of 16/)
  expect(start({ logger, keys: 'none', secret: 'of sixteen characters or more' })).toThrow(/secret: expected none/)
  expect(start({ logger, linesPerSecond: 0 })).toThrow(/linesPerSecond: expected a whole number of at least 1/)
  expect(start({ logger, linesPerSecond: 1001 })).toThrow(/linesPerSecond: expected at most 1000/)
  expect(start({ logger, level: 'info' })).toThrow(/level: unknown option/)
})
