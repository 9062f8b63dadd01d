import { problemsIn } from '@sluice/policies'
import { describe, expect, test } from 'vitest'

/** A document with one mistake, and where it is: the line and column of `▸`, which is removed before it is read. */
interface Mistake {
  readonly what: string
  readonly text: string
  readonly path: string
  readonly message: RegExp
}

const policy = (text: string) => `version: 1\npolicies:\n  api:\n${text}`
const limits = (text: string) => policy(`    limits:\n      - ${text}\n`)
const RIGHT = '    limits: [{ limit: 1, window: 1s }]\n'

const MISTAKES: readonly Mistake[] = [
  { what: 'no version', text: '▸policies: {}\n', path: '', message: /expected version.*missing/ },
  { what: 'another version', text: 'version: ▸2\npolicies: {}\n', path: 'version', message: /expected 1, .*got 2/ },
  { what: 'no policies', text: '▸version: 1\n', path: '', message: /expected policies.*missing/ },
  { what: 'an array', text: '▸- a\n', path: '', message: /a document of policies.*got an array/ },
  { what: 'nothing', text: '▸', path: '', message: /a document of policies.*got nothing/ },
  {
    what: 'a field that is misspelt',
    text: `version: 1\n▸policys: {}\npolicies: {}\n`,
    path: 'policys',
    message: /unknown field; did you mean policies\?/,
  },
  {
    what: 'a name with a space',
    text: `version: 1\npolicies:\n  ▸a b:\n${RIGHT}`,
    path: 'policies["a b"]',
    message: /letters, digits/,
  },
  {
    what: '__proto__',
    text: `version: 1\npolicies:\n  a: { limits: [{ limit: 1, window: 1s }], ▸__proto__: {} }\n`,
    path: 'policies.a.__proto__',
    message: /unknown field/,
  },
  {
    what: 'a name twice',
    text: policy(`${RIGHT}  ▸api:\n${RIGHT}`),
    path: 'policies.api',
    message: /once, got it twice/,
  },
  {
    what: 'no limits',
    text: 'version: 1\npolicies:\n  ▸api: {}\n',
    path: 'policies.api',
    message: /expected limits, or tiers/,
  },
  {
    what: 'a ban that does not grow',
    text: policy(`${RIGHT}    ban: { after: 3, within: 1m, for: [1h, ▸1h] }\n`),
    path: 'policies.api.ban.for[1]',
    message: /longer time than the rung before/,
  },
  {
    what: 'a ban by a kind that is not counted',
    text: policy(`${RIGHT}    ban: { by: ▸user, after: 3, within: 1m, for: [1h] }\n`),
    path: 'policies.api.ban.by',
    message: /a kind that the policy counts: "ip"/,
  },
  {
    what: 'an empty array of limits',
    text: policy('    limits: ▸[]\n'),
    path: 'policies.api.limits',
    message: /1 to 32 limits, got 0/,
  },
  {
    what: 'a limit that is a number',
    text: limits('▸100'),
    path: 'policies.api.limits[0]',
    message: /expected a limit such as.*got 100/,
  },
  {
    what: 'limits that are an object',
    text: policy('    limits: ▸{ limit: 1 }\n'),
    path: 'policies.api.limits',
    message: /expected an array/,
  },
  {
    what: 'no window',
    text: limits('▸limit: 1'),
    path: 'policies.api.limits[0]',
    message: /expected window, a duration.*missing/,
  },
  {
    what: 'a limit in words',
    text: limits('{ limit: ▸ten, window: 1m }'),
    path: 'policies.api.limits[0].limit',
    message: /whole number of 0 or more.*got "ten"/,
  },
  {
    what: 'a limit below 0',
    text: limits('{ limit: ▸-1, window: 1m }'),
    path: 'policies.api.limits[0].limit',
    message: /0 or more.*got -1/,
  },
  {
    what: 'half a request',
    text: limits('{ limit: ▸1.5, window: 1m }'),
    path: 'policies.api.limits[0].limit',
    message: /whole number.*got 1.5/,
  },
  {
    what: 'a limit beyond all numbers',
    text: limits('{ limit: ▸1e400, window: 1m }'),
    path: 'policies.api.limits[0].limit',
    message: /below 2\^53/,
  },
  {
    what: 'a window in words',
    text: limits('{ limit: 1, window: ▸1 minuite }'),
    path: 'policies.api.limits[0].window',
    message: /a duration such as 30s.*got "1 minuite"/,
  },
  {
    what: 'a window of 0',
    text: limits('{ limit: 1, window: ▸0 }'),
    path: 'policies.api.limits[0].window',
    message: /duration/,
  },
  {
    what: 'a window of 200 years',
    text: limits('{ limit: 1, window: ▸73000d }'),
    path: 'policies.api.limits[0].window',
    message: /100 years/,
  },
  {
    what: 'products that would round',
    text: limits('{ algorithm: gcra, limit: ▸9007199254740991, window: 1d }'),
    path: 'policies.api.limits[0].limit',
    message: /below 2\^53/,
  },
  {
    what: 'an algorithm that is none',
    text: limits('{ algorithm: ▸tokenBuckt, capacity: 5 }'),
    path: 'policies.api.limits[0].algorithm',
    message: /did you mean tokenBucket\?/,
  },
  {
    what: 'an option of another algorithm',
    text: limits('{ limit: 1, window: 1m, ▸burst: 5 }'),
    path: 'policies.api.limits[0].burst',
    message: /unknown field/,
  },
  {
    what: 'refill beside limit',
    text: limits('{ algorithm: tokenBucket, ▸refill: 5, limit: 5, every: 1s }'),
    path: 'policies.api.limits[0].refill',
    message: /none beside limit/,
  },
  {
    what: 'two limits of one name',
    text: policy(
      '    limits:\n      - { name: a, limit: 1, window: 1s }\n      - { name: ▸a, limit: 2, window: 1m }\n',
    ),
    path: 'policies.api.limits[1].name',
    message: /names differ/,
  },
  {
    what: 'segments that do not divide',
    text: limits('{ algorithm: slidingWindow, limit: 1, window: 10s, segments: ▸7 }'),
    path: 'policies.api.limits[0].segments',
    message: /equal parts/,
  },
  {
    what: 'a kind that is none',
    text: policy(`    key: ▸{ ipv6: 1 }\n${RIGHT}`).replace('▸{ ipv6', '{ ▸ipv6'),
    path: 'policies.api.key.ipv6',
    message: /unknown field/,
  },
  {
    what: 'a key that is a number',
    text: policy(`    key: ▸42\n${RIGHT}`),
    path: 'policies.api.key',
    message: /a kind such as ip/,
  },
  {
    what: 'a method in lower case',
    text: policy(`    match: { methods: [▸get] }\n${RIGHT}`),
    path: 'policies.api.match.methods[0]',
    message: /upper case/,
  },
  {
    what: 'a path without its slash',
    text: policy(`    match: { paths: [▸users] }\n${RIGHT}`),
    path: 'policies.api.match.paths[0]',
    message: /begins with \//,
  },
  {
    what: 'a wildcard within a segment',
    text: policy(`    match: { paths: [▸/a*b] }\n${RIGHT}`),
    path: 'policies.api.match.paths[0]',
    message: /whole segment/,
  },
  {
    what: '** in the middle',
    text: policy(`    match: { paths: [▸/a/**/b] }\n${RIGHT}`),
    path: 'policies.api.match.paths[0]',
    message: /last segment/,
  },
  {
    what: 'a path with a query',
    text: policy(`    match: { paths: ["▸/a?b=c"] }\n${RIGHT}`.replace('"▸', '▸"')),
    path: 'policies.api.match.paths[0]',
    message: /query/,
  },
  {
    what: 'a mode that is none',
    text: policy(`    mode: ▸shadow\n${RIGHT}`),
    path: 'policies.api.mode',
    message: /"enforce" or "report"/,
  },
  {
    what: '101 percent',
    text: policy(`    enforcePercent: ▸101\n${RIGHT}`),
    path: 'policies.api.enforcePercent',
    message: /0 to 100/,
  },
  {
    what: 'enforcePercent beside report',
    text: policy(`    mode: report\n    ▸enforcePercent: 5\n${RIGHT}`),
    path: 'policies.api.enforcePercent',
    message: /none beside/,
  },
  {
    what: 'tiers without tier',
    text: policy('    ▸tiers: { a: [{ limit: 1, window: 1s }] }\n'),
    path: 'policies.api.tiers',
    message: /expected tier beside/,
  },
  {
    what: 'tier without tiers',
    text: policy(`    ▸tier: plan\n${RIGHT}`),
    path: 'policies.api.tier',
    message: /expected tiers beside/,
  },
  {
    what: 'limits beside tiers',
    text: policy(`    tier: plan\n    ▸tiers: { a: [{ limit: 1, window: 1s }] }\n${RIGHT}`),
    path: 'policies.api.tiers',
    message: /none beside limits/,
  },
  {
    what: 'a responder that is none',
    text: policy(`    respond: ▸refuse\n${RIGHT}`),
    path: 'policies.api.respond',
    message: /reject, pass/,
  },
  {
    what: 'a wrong status',
    text: policy(`    respond: { reject: { status: ▸404 } }\n${RIGHT}`),
    path: 'policies.api.respond.reject.status',
    message: /429 or 503/,
  },
  { what: 'a tab as indentation', text: 'version: 1\npolicies:\n▸\tapi: {}\n', path: '', message: /[Tt]ab/ },
  { what: 'a quote that is not closed', text: 'version: 1\npolicies: {"a: 1}\n▸', path: '', message: /quote/ },
  { what: 'an alias of nothing', text: 'version: 1\npolicies: ▸*nothing\n', path: 'policies', message: /alias/ },
  {
    what: 'two documents',
    text: 'version: 1\npolicies: {}\n▸---\nversion: 1\n',
    path: '',
    message: /expected one document, got a second one/,
  },
]

describe('a mistake is told with its line, its column and its path:', () => {
  test.each(MISTAKES.map((mistake) => [mistake.what, mistake] as const))('%s', (_what, { text, path, message }) => {
    const before = text.slice(0, text.indexOf('▸'))
    const line = before.split('\n').length
    const column = before.length - before.lastIndexOf('\n')
    const problems = problemsIn(text.replace('▸', ''), 'policies.yaml', 'any')
    expect(problems.map((problem) => ({ ...problem, message: '' }))).toContainEqual({
      source: 'policies.yaml',
      line,
      column,
      path,
      message: '',
    })
    expect(problems[0]?.message).toMatch(message)
  })

  test('all of one document at once', () => {
    const text = policy('    mode: shadow\n    limits:\n      - { limit: ten, window: 1m }\n      - { limit: 1 }\n')
    expect(problemsIn(text, 'a.yaml', 'any').map(({ path }) => path)).toEqual([
      'policies.api.mode',
      'policies.api.limits[0].limit',
      'policies.api.limits[1]',
    ])
  })

  test('a name that code does not register, where it is known what that registers', () => {
    const text = policy(`    key: account\n${RIGHT}`)
    expect(problemsIn(text, 'a.yaml', { keys: { user: () => 'ann' } })[0]).toMatchObject({
      line: 4,
      column: 10,
      path: 'policies.api.key',
      message: expect.stringMatching(/expected ip, .*user .*got "account"/),
    })
    expect(problemsIn(text, 'a.yaml', 'any')).toEqual([])
  })
})

test('of as many mistakes as there are fields a hundred are told, each with its place', () => {
  const fields = Array.from({ length: 20_000 }, (_, i) => `    matc${i}: 1`)
  const problems = problemsIn(policy(`${RIGHT}${fields.join('\n')}\n`), 'a.yaml', 'any')
  expect(problems).toHaveLength(100)
  expect(problems[99]).toMatchObject({ line: 104, column: 5, message: expect.stringMatching(/unknown field/) })
})

test('an alias is the last node of its name before it, however many there are', () => {
  // To look for each by a walk through the document would take a minute.
  const many = Array.from({ length: 15_000 }, () => '*b')
  const text = `version: 1
policies:
  a: { limits: &a [{ limit: 1, window: 1s }], description: &b first }
  b: { limits: *a, description: *b }
  c: { limits: &a [{ limit: ten, window: 1s }], description: &b second }
  d: { limits: *a, allow: { user: [${many.join(', ')}] } }
`
  expect(problemsIn(text, 'a.yaml', 'any')).toMatchObject([
    { line: 5, column: 29, path: 'policies.c.limits[0].limit' },
    { line: 5, column: 29, path: 'policies.d.limits[0].limit' },
  ])
})
