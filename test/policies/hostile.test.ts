import { policies, problemsIn } from '@sluice/policies'
import { describe, expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'

const COUNT = 1_000_000
const LIMITS = '    limits: [{ limit: 1, window: 1s }]\n'
const policy = (text: string) => `version: 1\npolicies:\n  api:\n${text}`
const laughs = (open: string, close: string, item: (i: number, j: number) => string) =>
  Array.from({ length: 20 }, (_, i) => {
    const items = Array.from({ length: 9 }, (_, j) => item(i, j))
    return `a${i + 1}: &a${i + 1} ${open}${items.join(', ')}${close}`
  }).join('\n')

const LEVELS = 'expected at most 32 levels'
const MARKS = 'expected at most 1000000 words and marks'
const VALUE = 'expected at most 262144 characters in one value'
const BY_ALIASES = 'expected aliases to stand for at most 50000 values'

/** Each entry: what it contains, the document, and the place and the message of its rejection. */
const DOCUMENTS: readonly (readonly [what: string, text: string, at: string, message: string])[] = [
  ['brackets', '['.repeat(COUNT / 2), '1:33', LEVELS],
  ['braces', '{a: '.repeat(COUNT / 10), '1:129', LEVELS],
  ['brackets in JSON', `{"version":1,"policies":${'['.repeat(COUNT / 2)}`, '1:56', LEVELS],
  ['dashes', '- '.repeat(COUNT), '1:201', LEVELS],
  ['question marks', '? '.repeat(COUNT), '1:201', LEVELS],
  ['indentation', Array.from({ length: 1000 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'), '202:1', LEVELS],
  ['lists that explode', `a0: &a0 [${'1, '.repeat(9)}]\n${laughs('[', ']', (i) => `*a${i}`)}`, '5:35', BY_ALIASES],
  ['maps that explode', `a0: &a0 { b: 1 }\n${laughs('{', '}', (i, j) => `k${j}: *a${i}`)}`, '6:32', BY_ALIASES],
  ['an alias of itself', 'a: &a [*a]', '1:8', 'expected no alias *a within what it stands for'],
  ['a policy within itself', 'version: 1\npolicies: &p { api: *p }', '2:21', 'expected no alias *p within'],
  ['aliases without end', `a: &a x\nb: [${'*a,'.repeat(COUNT)}]`, '2:60005', 'expected at most 20000 aliases'],
  ['a list without end', `version: 1\npolicies: [${'1,'.repeat(COUNT)}]`, '2:666670', MARKS],
  ['commas', `[${','.repeat(COUNT)}]`, '1:1000000', MARKS],
  ['fields without end', `{${'a: 1,'.repeat(COUNT)}}`, '1:714286', MARKS],
  ['lines without end', `version: 1\n${'\n'.repeat(2 * COUNT)}`, '999994:1', MARKS],
  ['comments without end', `version: 1\n${'#\n'.repeat(2 * COUNT)}`, '499998:1', MARKS],
  ['tabs', `version: 1\npolicies:\n${'\ta: 1\n'.repeat(COUNT)}`, '125001:4', MARKS],
  ['unmatched closing braces', '}'.repeat(COUNT), '1:1', 'Unexpected flow-map-end'],
  ['directives without end', '%@\n'.repeat(COUNT), '1:1', 'expected no directive but %YAML 1.2, got "%@"'],
  ['documents without end', '---\n'.repeat(COUNT / 10), '2:1', 'expected one document, got a second one'],
  ['a document that is too long', `version: 1 #${'x'.repeat(9 * COUNT)}`, '1:1', 'expected at most 8388608 characters'],
  ['a number without end', `policies: {}\nversion: ${'9'.repeat(COUNT)}`, '2:10', VALUE],
  ['a hexadecimal number without end', `policies: {}\nversion: 0x${'f'.repeat(COUNT)}`, '2:10', VALUE],
  ['a key without end', `${'k'.repeat(COUNT)}: 1`, '1:1', VALUE],
  ['a text without end', policy(`    limits: [{ limit: 1, window: "${'1.'.repeat(COUNT)}x" }]`), '4:34', VALUE],
  [
    'many digits in a duration',
    policy(`    limits: [{ limit: 1, window: "${'1.'.repeat(COUNT / 10)}x" }]`),
    '4:34',
    'a duration',
  ],
  [
    'many wildcards in a path',
    policy(`    match: { paths: ["/${'*a'.repeat(400)}"] }\n${LIMITS}`),
    '4:22',
    'whole segment',
  ],
]

/** Documents that end at a million words and marks take a second or two of computing each. */
const isTried = byEffort({ usual: (message: string) => message !== MARKS, full: () => true })
const tried = DOCUMENTS.filter(([what, , , message]) => isTried(message) || what === 'lines without end')

describe('hostile documents', () => {
  test.each(tried)('a document with %s is rejected at once, with its place', (_what, text, at, message) => {
    const start = process.cpuUsage()
    const [problem] = problemsIn(text, 'a.yaml', 'any')
    const { user, system } = process.cpuUsage(start)
    // A document just below the bounds takes a third of that. The parser alone takes more than ten seconds for most of
    // these, or runs out of memory.
    expect((user + system) / 1000).toBeLessThan(5000)
    expect(problem?.message).toContain(message)
    expect(`${problem?.line}:${problem?.column}`).toBe(at)
  })

  test.each([
    ['brackets', '['.repeat(COUNT / 2), /:1:33: expected at most 32 levels/],
    [
      'marks at its end',
      `# ${'x'.repeat(2 * COUNT)}\n[${','.repeat(COUNT)}]`,
      /:2:999998: expected at most 1000000 words/,
    ],
  ])('a document from load() with %s is rejected at once', async (_what, text, message) => {
    await expect(policies.from({ load: () => text })).rejects.toThrow(message)
  })

  test('an object that contains itself is rejected', async () => {
    const circle: Record<string, unknown> = { version: 1 }
    circle.policies = circle
    await expect(policies.from({ object: circle })).rejects.toThrow(LEVELS)
  })
})

describe('YAML that looks like something else', () => {
  test.each([
    ['a function', `${LIMITS}    description: !!js/function "() => {}"\n`, '5:32', 'expected no tag'],
    ['bytes', `${LIMITS}    description: !!binary aGVsbG8=\n`, '5:27', 'expected no tag'],
    ['a tag of a list', '    limits: !mine [{ limit: 1, window: 1s }]\n', '4:19', 'expected no tag, got "!mine"'],
    ['a merge key', '    <<: { limits: [{ limit: 1, window: 1s }] }\n', '4:5', 'unknown field'],
    ['no', `${LIMITS}    ban: { after: 3, within: 1m, for: [1h], private: no }\n`, '5:54', 'true or false, got "no"'],
    ['a sexagesimal number', '    limits: [{ limit: 1:30, window: 1s }]\n', '4:23', 'whole number of 0 or more'],
    ['a number with _', '    limits: [{ limit: 1_000, window: 1s }]\n', '4:23', 'got "1_000"'],
    ['infinity', '    limits: [{ limit: .inf, window: 1s }]\n', '4:23', 'got Infinity'],
    ['no number', '    limits: [{ limit: .nan, window: 1s }]\n', '4:23', 'got NaN'],
    ['a field twice, once escaped', `${LIMITS}    "\\u006cimits": []\n`, '5:5', 'once, got it twice'],
    [
      'lines that end in CRLF',
      '    enforce: { mode: on }\n'.replace('\n', '\r\n'),
      '4:22',
      '"enforce" or "report", got "on"',
    ],
  ])('a document with %s is rejected with the place', (_what, text, at, message) => {
    const problem = problemsIn(policy(text), 'a.yaml', 'any').find((each) => each.message.includes(message))
    expect(`${problem?.line}:${problem?.column}`).toBe(at)
  })

  test.each([
    ['an earlier version of YAML', '%YAML 1.1\n---\nversion: 1\n', '1:1', 'expected no directive but %YAML 1.2'],
    ['NUL', 'version: 1\npolicies: \0{}\n', '2:11', 'expected no control characters, got U+0000'],
    ['an escape sequence', 'version: 1\npolicies: "\x1b[31m"\n', '2:12', 'got U+001B'],
    ['an escape sequence in a single byte', 'version: "\x9b31m"\n', '1:11', 'got U+009B'],
    ['a web page', '<!DOCTYPE html>\n', '1:1', 'expected a document of policies'],
  ])('a document that is or contains %s is rejected with the place', (_what, text, at, message) => {
    const [problem] = problemsIn(text, 'a.yaml', 'any')
    expect(problem?.message).toContain(message)
    expect(`${problem?.line}:${problem?.column}`).toBe(at)
  })

  test.each([
    ['YAML 1.2 by a directive', `%YAML 1.2\n---\n${policy(LIMITS)}`],
    ['a byte order mark', `\uFEFF${policy(LIMITS)}`],
    ['lines that end in CRLF', policy(LIMITS).replaceAll('\n', '\r\n')],
    ['words that YAML 1.1 read as booleans', `version: 1\npolicies:\n  on:\n${LIMITS}  no:\n${LIMITS}  1:\n${LIMITS}`],
    ['the end of a document', `${policy(LIMITS)}...\n`],
    ['names of properties of every object', `version: 1\npolicies:\n  __proto__:\n${LIMITS}  constructor:\n${LIMITS}`],
  ])('a document with %s is accepted', (_what, text) => {
    expect(problemsIn(text, 'a.yaml', 'any')).toEqual([])
  })
})

test('a limit of -0 is 0', async () => {
  const loaded = await policies.from({ load: () => policy('    limits: [{ limit: -0, window: 1s }]\n') })
  expect(Object.is(loaded.byName.get('api')?.options.limits?.[0]?.limit, 0)).toBe(true)
})

test('a date that does not exist is rejected with its place', () => {
  const until = (day: string) =>
    `${policy(LIMITS)}overrides:\n  - { policy: api, key: { ip: 192.0.2.1 }, limits: [{ limit: 2 }], until: ${day}T00:00:00Z }\n`
  expect(problemsIn(until('2027-02-29'), 'a.yaml', 'any')).toMatchObject([
    { line: 6, path: 'overrides[0].until', message: expect.stringContaining('expected a time that there is') },
  ])
  expect(problemsIn(until('2028-02-29'), 'a.yaml', 'any')).toEqual([])
})

test('nothing quoted in a message can control a terminal', () => {
  const text = 'version: 1\npolicies:\n  "a\\e[31m\\u202e\\u009b":\n    limits: []\n'
  for (const { path, message } of problemsIn(text, 'a.yaml', 'any')) {
    expect(path + message).toMatch(/^[\x20-\x7e…]*$/)
  }
})
