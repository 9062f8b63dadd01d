import { types } from 'node:util'
import {
  byCookie,
  byHeader,
  byIp,
  concurrency,
  createLimiter,
  degrade,
  delay,
  fixedWindow,
  gcra,
  leakyBucket,
  memoryStore,
  perMinute,
  queue,
  redisStore,
  reject,
  type Store,
  shadow,
  slidingLog,
  slidingWindow,
  tarpit,
  throttle,
  tokenBucket,
} from '@sluice/core'
import { createGuard } from '@sluice/core/http'
import fc from 'fast-check'
import { standIn } from '../../support/stand-in.js'
import { namesNothing } from './support/costs.js'
import { expectSaid, must } from './support/errors.js'
import { fuzz } from './support/fuzz.js'
import { type Make, notAValue, number, text } from './support/hostile.js'

/** An option: values that are valid whatever the others are, and a check whether a value is of its kind. */
interface Option {
  readonly right: readonly unknown[]
  readonly isKind: (value: unknown) => boolean
}

const option = (isKind: Option['isKind'], ...right: unknown[]): Option => ({ isKind, right })
const isFunction = (value: unknown) => typeof value === 'function'
const isWhole = (least: number) => (value: unknown) => Number.isSafeInteger(value) && (value as number) >= least
const isOneOf =
  (...choices: unknown[]) =>
  (value: unknown) =>
    choices.includes(value)
const isDuration = (value: unknown) =>
  typeof value === 'string' ? /^\d+(\.\d+)?(ms|s|m|h|d)$/.test(value) : isWhole(1)(value)
const isName = (value: unknown) => typeof value === 'string' && /^[\w-]{1,64}$/.test(value)
const isObject = (value: unknown) => typeof value === 'object' && value !== null
const isText = (value: unknown) => typeof value === 'string'

const name = option(isName, 'a', 'A-1_z', 'x'.repeat(64))
const key = option(isFunction, () => 'k')
const limit = option((value) => isFunction(value) || isWhole(0)(value), 0, 1, 5)
const window = option((value) => isFunction(value) || isDuration(value), 1, 1000, '1s', '1.5m', '1d')
const respond = option(isFunction, reject(), shadow())
const reserve = option(
  (value) => (typeof value === 'number' && value >= 0) || (isObject(value) && Object.keys(value as object).length > 0),
  0,
  0.1,
)
const RESERVED_UNIT = /^(requests|content-bytes|response-bytes|concurrent-requests)$/i
const unit = option(
  (value) =>
    isOneOf('requests', 'content-bytes', 'response-bytes')(value) ||
    (typeof value === 'string' && /^[A-Za-z0-9-]{1,32}$/.test(value) && !RESERVED_UNIT.test(value)),
  'requests',
  'tokens',
)
const common = { name, key, respond, reserve }
const rate = { ...common, limit, window }
const whole = (least: number) => option(isWhole(least), least, least + 1)
const duration = option(isDuration, 1, '10s')
const wait = option(
  (value) => isDuration(value) || value === Number.POSITIVE_INFINITY,
  1,
  '10s',
  Number.POSITIVE_INFINITY,
)
const boolean = option((value) => typeof value === 'boolean', true, false)
const store = option((value) => isObject(value), memoryStore())

const policy = { name, limit, window, key, onDeny: option(isOneOf('none', 'charge'), 'none', 'charge'), store }
const request = {
  ...policy,
  cost: option(
    (value) => isFunction(value) || isWhole(0)(value) || namesNothing(value),
    0,
    1,
    () => 1,
  ),
  skip: key,
  respond,
  headers: option((value) => isText(value) || isObject(value) || value === false, 'draft-11', false, ['draft-8']),
  onVerdict: key,
  anonymous: option(isOneOf('error', 'by-ip', 'skip'), 'error', 'skip'),
  enforce: option((value) => isObject(value), {}, { mode: 'report' }, { percent: 5, salt: 'x', headers: true }),
  unavailable: option((value) => isObject(value), {}, { decide: 'deny' }, { share: 0.5 }),
  count: option((value) => isObject(value), { only: () => true }, { only: 'success', within: '1s' }),
  body: option((value) => isObject(value), { max: 0 }, { max: 9, requireLength: true }),
}

interface Subject {
  readonly make: (options: never) => unknown
  readonly options: Readonly<Record<string, Option>>
  /** The required options. */
  readonly needed: readonly string[]
}

const SUBJECTS: Readonly<Record<string, Subject>> = {
  slidingLog: { make: slidingLog, options: rate, needed: ['limit', 'window'] },
  fixedWindow: {
    make: fixedWindow,
    options: { ...rate, unit, anchor: option(isOneOf('clock', 'first-request'), 'clock', 'first-request') },
    needed: ['limit', 'window'],
  },
  slidingWindow: {
    make: slidingWindow,
    options: {
      ...rate,
      unit,
      segments: option(isWhole(1), 1),
      edge: option(isOneOf('weighted', 'strict', 'dropped'), 'weighted', 'strict'),
      rounding: option(isOneOf('up', 'down'), 'up', 'down'),
    },
    needed: ['limit', 'window'],
  },
  gcra: { make: gcra, options: { ...rate, unit, burst: whole(1) }, needed: ['limit', 'window'] },
  tokenBucket: {
    make: tokenBucket,
    options: {
      ...common,
      unit,
      refill: limit,
      every: window,
      capacity: whole(1),
      style: option(isOneOf('greedy', 'interval'), 'greedy', 'interval'),
    },
    needed: ['refill', 'every'],
  },
  leakyBucket: {
    make: leakyBucket,
    options: { ...common, unit, leak: limit, every: window, capacity: whole(1), queue: boolean },
    needed: ['leak', 'every'],
  },
  concurrency: {
    make: concurrency,
    options: { ...common, limit, ttl: duration, maxHold: duration },
    needed: ['limit'],
  },
  createLimiter: { make: createLimiter, options: policy, needed: ['limit', 'window'] },
  rateLimit: { make: createGuard, options: request, needed: ['limit', 'window'] },
  memoryStore: {
    make: memoryStore,
    options: { clock: option(isFunction, () => 0), maxKeys: whole(1) },
    needed: [],
  },
  redisStore: {
    make: (options) => redisStore(client, options),
    options: {
      clock: option(isFunction, () => 0),
      timeout: duration,
      batch: whole(1),
      prefix: option(isText, '', 'a:', '{tag}:'),
      denyCache: boolean,
      onStateChange: option(isFunction, () => {}),
    },
    needed: [],
  },
  reject: {
    make: reject,
    options: {
      status: option(isOneOf(429, 503), 429, 503),
      body: option(
        (value) => isText(value) || isObject(value) || isFunction(value),
        'no',
        {},
        () => 'no',
      ),
    },
    needed: [],
  },
  delay: {
    make: delay,
    options: { max: wait, from: whole(0), maxConnections: whole(1), otherwise: respond },
    needed: [],
  },
  queue: {
    make: queue,
    options: {
      maxWait: wait,
      size: whole(1),
      maxConnections: whole(1),
      priority: option(
        (value) => isFunction(value) || Number.isFinite(value),
        0,
        () => 1,
      ),
      ageEvery: wait,
      otherwise: respond,
    },
    needed: [],
  },
  tarpit: { make: tarpit, options: { for: duration, maxConnections: whole(0), answer: respond }, needed: [] },
  throttle: {
    make: throttle,
    options: { bytesPerSecond: whole(1), after: whole(0), maxConnections: whole(1), otherwise: respond },
    needed: ['bytesPerSecond'],
  },
  degrade: { make: degrade, options: { otherwise: respond }, needed: [] },
  shadow: {
    make: shadow,
    options: {
      status: option((value) => Number.isInteger(value) && (value as number) >= 200 && (value as number) < 600, 200),
      body: option((value) => isText(value) || isObject(value) || isFunction(value), 'OK', {}),
      contentType: option(isText, 'text/plain'),
      headers: option((value) => isObject(value) || isFunction(value), { a: 'b' }),
    },
    needed: [],
  },
  byIp: {
    make: byIp,
    options: {
      ipv4Prefix: option(isWhole(1), 24, 32),
      ipv6Prefix: option(isWhole(1), 48, 128),
      nat64: option((value) => value === false || Array.isArray(value), false, ['64:ff9b::/96']),
    },
    needed: [],
  },
  byHeader: { make: (options) => byHeader('x', options), options: { secret: boolean }, needed: [] },
  byCookie: { make: (options) => byCookie('x', options), options: { secret: boolean }, needed: [] },
}

const client = standIn(() => {
  throw new Error('expected no decision')
})

// A proxy whose traps throw is an error of the caller, not of an option.
const wrong: fc.Arbitrary<Make> = fc
  .oneof(
    number,
    notAValue,
    text.map(
      (value): Make =>
        () =>
          value,
    ),
  )
  .filter((make) => !types.isProxy(make()))

type Draft = readonly [string, Readonly<Record<string, unknown>>]

/** The required options and some of the others, all valid. */
const draft: fc.Arbitrary<Draft> = fc
  .constantFrom(...Object.keys(SUBJECTS))
  .chain((subject) =>
    fc.tuple(
      fc.constant(subject),
      fc.record(
        Object.fromEntries(
          Object.entries((SUBJECTS[subject] as Subject).options).map(([field, { right }]) => [
            field,
            fc.constantFrom(...right),
          ]),
        ),
        { requiredKeys: [...(SUBJECTS[subject] as Subject).needed] },
      ),
    ),
  )
  // Rejected beside each other.
  .filter(([, { count, onDeny }]) => count === undefined || onDeny !== 'charge')

const closed = (made: unknown) => (made as Partial<Store> | undefined)?.close?.()

fuzz('policies', 'valid options are accepted, and a reserve that does not fit is rejected by name', {
  inputs: draft,
  async check([subject, options]) {
    const { make } = SUBJECTS[subject] as Subject
    const message = await expectSaid(['INVALID_POLICY'], () => closed(make(options as never)))
    if (message !== '') must(isExplained(options, message), `${subject} to accept valid options`, message)
  },
})

/** Whether the rejection is of valid values that do not fit each other. */
function isExplained(options: Readonly<Record<string, unknown>>, message: string): boolean {
  if (/: reserve: expected less than/.test(message)) return options.reserve !== undefined
  return false
}

fuzz('policies', 'one invalid or missing value among valid ones is INVALID_POLICY with the name of its option', {
  inputs: fc.record({ draft, wrong, which: fc.nat(30), isMissing: fc.boolean() }),
  async check({ draft: [subject, right], wrong, which, isMissing }) {
    const { make, options, needed } = SUBJECTS[subject] as Subject
    const fields = Object.keys(options)
    const field = (
      isMissing && needed.length > 0 ? needed[which % needed.length] : fields[which % fields.length]
    ) as string
    const value = isMissing ? undefined : wrong()
    if (isMissing && !needed.includes(field)) return
    if (!isMissing && (value === undefined || (options[field] as Option).isKind(value))) return
    const message = await expectSaid(['INVALID_POLICY'], () => closed(make({ ...right, [field]: value } as never)))
    must(message !== '', `${subject} to refuse ${field}`, value)
    must(named(message, field), `the name of ${field}`, message)
  },
})

/** `refill` and `every` of a bucket are its limit and window, and errors may use either name. */
function named(message: string, field: string): boolean {
  const also = { refill: 'limit', leak: 'limit', every: 'window' }[field]
  return new RegExp(`: (${field}${also ? `|${also}` : ''})\\b[^:]*(: options)?: expected `).test(message)
}

fuzz('policies', 'an unknown option is rejected by name, and so are options that are no object', {
  inputs: fc.record({ draft, field: text, value: wrong, instead: wrong, byItself: fc.boolean() }),
  async check({ draft: [subject, right], field, value, instead, byItself }) {
    const { make, options } = SUBJECTS[subject] as Subject
    if (byItself) {
      const given = instead()
      if (given === undefined || isObject(given)) return
      const message = await expectSaid(['INVALID_POLICY'], () => closed(make(given as never)))
      return must(message !== '', `${subject} to reject options that are no object`, given)
    }
    if (field in options || OTHERS.has(field) || field === '__proto__') return
    const message = await expectSaid(['INVALID_POLICY'], () => {
      return closed(make({ ...right, [field]: value() } as never))
    })
    must(/: unknown option/.test(message), `${subject} to refuse ${JSON.stringify(field)}`, message)
  },
})

/** Options that exist beside those above. */
const OTHERS = new Set(['window', 'limit', 'limits', 'tiers', 'tier', 'priority', 'precision', 'by', 'maxWait'])

const listed = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom<Make[]>(
      () => perMinute(5),
      () => gcra({ limit: 1, window: 1 }),
    ),
  },
  { weight: 1, arbitrary: wrong },
  {
    weight: 1,
    arbitrary: fc.constantFrom<Make[]>(
      () => ({}),
      () => ({ resolve: () => ({}) }),
      () => ({ ...perMinute(5), limit: -1 }),
      () => ({ ...perMinute(5), key: 5 }),
      () => ({ ...perMinute(5), name: 'a"b' }),
      () => Object.create(perMinute(5)),
    ),
  },
)

fuzz('policies', 'lists of limits and tiers with any content decide, or are INVALID_POLICY', {
  dearness: 4,
  inputs: fc.record({
    list: fc.array(listed, { maxLength: 4 }),
    tiers: fc.option(
      fc.dictionary(fc.oneof(text, fc.constantFrom('gold', 'free')), fc.array(listed, { maxLength: 2 }), {
        maxKeys: 3,
      }),
    ),
    priority: fc.option(fc.dictionary(fc.constantFrom('gold', 'free', 'glod'), number, { maxKeys: 2 })),
  }),
  async check({ list, tiers, priority }) {
    const limits = list.map((make) => make())
    const byTier =
      tiers && Object.fromEntries(Object.entries(tiers).map(([tier, made]) => [tier, made.map((make) => make())]))
    const priorities = priority && Object.fromEntries(Object.entries(priority).map(([tier, make]) => [tier, make()]))
    const names = Object.keys(byTier ?? {})
    const options = byTier
      ? { tiers: byTier, tier: () => names[0], ...(priorities && { priority: priorities }) }
      : { limits }
    let made: ReturnType<typeof createLimiter<string>> | undefined
    const message = await expectSaid(['INVALID_POLICY'], () => {
      made = createLimiter(options as never)
      createGuard({ ...options, key: () => 'k' } as never)
    })
    if (!made)
      return must(/: (limits|tiers|tier|name|priority|key|limit)\b[^:]*: expected /.test(message), 'a name', message)
    for (const limit of made.limits) must(Number(limit.limit) >= 1, 'limits of one of the constructors', limit)
    for (const tier of Object.keys(priorities ?? {})) must(!byTier || names.includes(tier), 'priorities of tiers', tier)
    must((await made.consume('k')).allowed, 'a request to be admitted')
  },
})
