/** Mistakes that programs make, with what the compiler and the error at run time say to write instead. */
export const MISTAKES: readonly (readonly [program: string, compiler: string, error: string])[] = [
  ['new RedisStore({ client: {} })', 'use redisStore(client)', 'write redisStore(client)'],
  [limited('store: { increment() {} }'), 'memoryStore() or redisStore(client)', 'memoryStore() or redisStore(client)'],
  [limited("key: 'ip'"), 'byIp(), byUser(', 'write byIp(), byUser('],
  [limited('key: byIp'), 'byIp(), byUser(', 'write byIp()'],
  [
    "rateLimit({ limit: 5, window: '1 minute' })",
    'duration such as \\"30s\\" (units: ms, s',
    'such as "30s" (units: ms, s',
  ],
  [
    "rateLimit({ limits: [{ limit: 5, window: '1m' }] })",
    'slidingLog({ limit, window })',
    'slidingLog({ limit, window })',
  ],
  [limited("headers: 'draft-9'"), 'Did you mean \'"draft-', 'expected "draft-11" or'],
  [limited("unavailable: 'allow'"), "{ decide: 'allow' }", "write { decide: 'allow' }; its fields are decide, share"],
  [limited('ban: 3'), "{ after: 3, within: '1h', for: [", "write { after: 3, within: '1h', for: ['10m', '1h'] }"],
  [limited('enforce: false'), "{ mode: 'report' }", "write { mode: 'report' }; its fields are mode"],
  ["rateLimit({ max: 5, window: '1m' })", 'use limit', 'use limit'],
  ['rateLimit({ limit: 5, windowMs: 60_000 })', 'use window', 'use window'],
  ["createLimiter({ max: 5, window: '1m' })", 'use limit', 'use limit'],
  [limited('keyGenerator: () => 5'), 'use key, such as byIp()', 'use key, such as byIp()'],
  [limited("prefix: 'api:'"), 'use store: redisStore(client, { prefix })', 'use store: redisStore(client, { prefix })'],
  [limited('burst: 10'), 'use limits: [gcra({ limit, window, burst })]', 'use limits: [gcra('],
  [limited("algorithm: 'gcra'"), 'use limits: [gcra({ limit, window })]', 'use limits: [gcra('],
  [limited('concurrency: 4'), 'use limits: [concurrency({ limit })]', 'use limits: [concurrency({ limit })]'],
  [limited('queue: true'), 'use respond: queue({ … })', 'use respond: queue({ … })'],
  [limited('trustProxy: true'), "app.set('trust proxy', 1)", "app.set('trust proxy', 1)"],
  [limited('failOpen: true'), "use unavailable: { decide: 'allow' }", "use unavailable: { decide: 'allow' }"],
  [limited('dryRun: true'), "use enforce: { mode: 'report' }", "use enforce: { mode: 'report' }"],
  [limited('weight: 3'), 'use cost', 'use cost'],
  [
    'perDay({ limit: 5 })',
    "parameter of type 'number'",
    'perDay: limit: expected a whole number, got an object: write perDay(20)',
  ],
  ["createLimiter({ limit: 5, window: '1m' }).resetKey('ann')", 'use reset(key)', 'write limiter.reset(key)'],
  ["rateLimit({ limit: 5, window: '1m' }).resetKey('ann')", 'use limiter.reset(key)', 'write limiter.reset(key)'],
]

const LIMITER = "createLimiter({ limit: 5, window: '1m' })"

function limited(option: string): string {
  return `rateLimit({ limit: 5, window: '1m', ${option} })`
}

/** Further wrong calls, of every part that throws, at once or by a promise. */
export const WRONG_CALLS: readonly string[] = [
  ...MISTAKES.map(([program]) => program),
  'rateLimit()',
  'rateLimit({ limits: [5] })',
  limited("allow: ['10.0.0.0/99']"),
  limited('respond: reject'),
  limited('warnings: { X: false }'),
  'fixedWindow({ limit: 5 })',
  'calendarDay(5, { utcOffset: 3 })',
  'byUser(5)',
  'compose(byIp)',
  "keyed('a b', () => 1)",
  'reject({ status: 200 })',
  'escalate([])',
  'handler(5)',
  'memoryStore({ maxKeys: -1 })',
  "redisStore('redis://localhost')",
  "ipRanges(['x'])",
  'fileList({})',
  "events.on('x', () => {})",
  "class Users { list() {} }\nRateLimited({ limit: 5, window: 'x' })(Users.prototype.list, { kind: 'method', name: 'list' })",
  `await ${LIMITER}.consume('')`,
  `await ${LIMITER}.consume('ann', { cost: -1 })`,
  `await ${LIMITER}.settle('x', 1)`,
  `await ${LIMITER}.block('ann', {})`,
  `await ${LIMITER}.reset('')`,
  "await createLimiter({ limit: () => 'x', window: '1m' }).consume('ann')",
  "await createLimiter({ limit: async () => -1, window: '1m' }).consume('ann')",
  'await policies.from({})',
  "await policies.from({ file: 'missing.yaml' })",
  'await policies.from({ object: { policies: {} } })',
]
