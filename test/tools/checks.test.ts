import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { problemsOfBundles, problemsOfKinds } from '../../scripts/check-bundles.js'
import { problemsOfContents, problemsOfErrors, problemsOfTypes } from '../../scripts/check-packages.js'
import { patternsIn, problemOfPattern } from '../../scripts/check-patterns.js'
import { problemInside, problemOf, problemsOfImports, problemsOfTable } from '../../scripts/check-rooms.js'
import { problemsOfSizes, sizesIn } from '../../scripts/check-sizes.js'
import { codeLinesIn } from '../../scripts/lib/code-lines.js'
import { problemsOfCompletions } from '../../scripts/lib/editor.js'
import { problemsOfFeatures, problemsOfPort } from '../../scripts/lib/features.js'
import { missingNames } from '../../scripts/lib/named-code.js'
import { withUndefined } from '../../scripts/lib/optional-fields.js'
import { requireNode } from '../../scripts/lib/project.js'
import { failures, total } from '../../scripts/test-report.js'

describe('names on pages', () => {
  const sources = new Map([
    ['packages/core/src/memory/store.ts', 'class MemoryStore { decide() { return this.#decideAll() } }'],
    ['packages/core/src/redis/store.ts', 'class RedisStore { #send() {} }'],
    ['test/memory.test.ts', 'const decideOne = 1'],
  ])

  test.each([
    ['decides in `memory/store.ts`: `decide`, and `#decideAll` for several', []],
    ['`store.ts` is in two folders, and `decide` in `memory/store.ts`', []],
    [
      'decides in `memory/store.ts`: `#decideOne`',
      ['`#decideOne`: no such name', '`memory/store.ts`: has no `#decideOne`'],
    ],
    ['| `redis/store.ts` | `decide` sends it |', ['`redis/store.ts`: has no `decide`']],
    ['`memory/bans.ts` has bans', ['`memory/bans.ts`: no such file']],
    ['```\n│ store.ts  #decideOne │\n```', ['`#decideOne`: no such name']],
    ['`limit` is an option, and no name beside a path', []],
  ])('%s', (page, problems) => {
    expect(missingNames(page, sources)).toEqual(problems)
  })
})

test('code lines are those without comments and blank lines', () => {
  const text = ['/** One. */', 'const a = 1 // two', '', '/**', ' * Three.', ' */', '// four', 'const b = 2'].join('\n')
  expect(codeLinesIn(text)).toBe(2)
})

test('a feature without its row, without a list, or with other imports is a problem', () => {
  const bans = { name: 'bans', lines: 1, imports: ['lists'], lists: ['all.ts'] }
  expect(problemsOfFeatures('| `bans` | bans | lists |', [bans])).toEqual([])
  expect(problemsOfFeatures('| `bans` | bans | – |', [{ ...bans, lists: [] }])).toEqual([
    'features/bans: no list has it',
    'features/bans: expected a row that ends with | lists |',
  ])
})

test('a further member of the port of stores is a problem, and a part by its symbol is none', () => {
  const members = Array.from({ length: 10 }, (_, i) => `  /** Doc. */\n  member${i}?(): void\n`).join('')
  const port = (more: string) => `export interface Store {\n${members}${more}}\n`
  expect(problemsOfPort(port('  readonly [BANS]?: StoreBans\n'))).toEqual([])
  expect(problemsOfPort(port('  offenders?<Name>(name: Name): void\n'))).toEqual([
    expect.stringMatching(/Store has 11 members by name, expected 10: member0, .*, offenders\./),
    expect.stringContaining('found by a symbol'),
  ])
})

describe('the test report', () => {
  const passing = {
    numPassedTests: 3,
    numFailedTests: 0,
    testResults: [{ status: 'passed', assertionResults: [{ status: 'passed' }] }],
  }

  test('the test report adds up the runs', () => {
    expect(total([passing, { ...passing, numPassedTests: 4 }], 0)).toEqual({ passed: 7, failed: 0 })
  })

  test('the test report counts failed tests once', () => {
    const failing = {
      numPassedTests: 2,
      numFailedTests: 1,
      testResults: [{ status: 'failed', assertionResults: [{ status: 'passed' }, { status: 'failed' }] }],
    }
    expect(total([failing], 1)).toEqual({ passed: 2, failed: 1 })
  })

  test('the test report names each failed test with the beginning of its message', () => {
    const message = ['AssertionError: 3 is not 4', ...Array.from({ length: 40 }, (_, line) => `at ${line}`)].join('\n')
    const failing = {
      numPassedTests: 1,
      numFailedTests: 1,
      testResults: [
        {
          name: resolve('test/a.test.ts'),
          status: 'failed',
          assertionResults: [
            { status: 'passed', fullName: 'adds', failureMessages: [] },
            { status: 'failed', fullName: 'counts', failureMessages: [message] },
          ],
        },
        { name: resolve('test/b.test.ts'), status: 'failed', message: 'cannot be loaded', assertionResults: [] },
      ],
    }
    const [counts, loading, ...others] = failures([failing])
    expect(counts).toMatch(/^FAILED (.+\/)?a\.test\.ts > counts\nAssertionError: 3 is not 4\nat 0\n/)
    expect(counts).not.toContain('at 39')
    expect(loading).toMatch(/b\.test\.ts\ncannot be loaded$/)
    expect(others).toEqual([])
  })

  test('the test report counts a test file that could not be loaded', () => {
    const broken = { numPassedTests: 2, numFailedTests: 0, testResults: [{ status: 'failed', assertionResults: [] }] }
    expect(total([broken], 1)).toEqual({ passed: 2, failed: 1 })
  })

  test('the test report counts a failure outside the tests', () => {
    expect(total([passing], 1)).toEqual({ passed: 3, failed: 1 })
  })

  test('the test report counts a run without tests as a failure', () => {
    expect(total([], 0)).toEqual({ passed: 0, failed: 1 })
    expect(total([], 1)).toEqual({ passed: 0, failed: 1 })
  })
})

test('types of a package are wrong where any resolution of TypeScript finds them so', () => {
  const problem = { kind: 'NoResolution', entrypoint: './http', resolutionKind: 'node10' } as const
  const analysis = { types: { kind: 'included' }, problems: [problem] }
  expect(problemsOfTypes(analysis as Parameters<typeof problemsOfTypes>[0])).toEqual([JSON.stringify(problem)])
})

describe('optional fields of declarations', () => {
  test.each([
    ['interface A { limit?: number }', 'interface A { limit?: number | undefined }'],
    ['interface A { key?: (id?: string) => void }', 'interface A { key?: ((id?: string) => void) | undefined }'],
    [
      'interface A { on?: { at?: number }; is?: B | undefined }',
      'interface A { on?: { at?: number | undefined } | undefined; is?: B | undefined }',
    ],
    ['type A = { [Field in Fields]?: boolean }', 'type A = { [Field in Fields]?: boolean | undefined }'],
    [
      'interface A { body?: Partial<B> }',
      'interface A { body?: { readonly [Field in keyof B]?: B[Field] | undefined } | undefined }',
    ],
    [
      'interface A { any?: unknown; close?(): void; limit: number }',
      'interface A { any?: unknown; close?(): void; limit: number }',
    ],
  ])('%s', (declarations, expected) => {
    expect(withUndefined(declarations)).toBe(expected)
  })
})

describe('the contents of a package', () => {
  const expected = {
    entries: ['index', 'http'],
    declarations: ['types/index.d.ts', 'types/entries/http.d.ts'],
    modules: ['module/index.js', 'module/util/other.js'],
    parts: ['dist/part.cjs'],
  }
  const complete = [
    'package.json',
    'LICENSE',
    'README.md',
    'dist/program.cjs',
    'dist/part.cjs',
    'dist/index.cjs',
    'dist/index.js',
    'dist/index.d.cts',
    'dist/index.d.ts',
    'dist/http.cjs',
    'dist/http.js',
    'dist/http.d.cts',
    'dist/http.d.ts',
    'dist/types/package.json',
    'dist/types/index.d.ts',
    'dist/types/entries/http.d.ts',
    'dist/module/index.js',
    'dist/module/util/other.js',
  ]

  test('the contents of a complete package cause no problem', () => {
    expect(problemsOfContents(complete, expected)).toEqual([])
  })

  test.each(complete)('a package without %s is incomplete', (missing) => {
    const files = complete.filter((file) => file !== missing)
    expect(problemsOfContents(files, expected)).toEqual([`${missing} is missing`])
  })

  test('a package with a program has to contain it', () => {
    expect(
      problemsOfContents([...complete, 'bin/tool.cjs'], { ...expected, parts: [...expected.parts, 'bin/tool.cjs'] }),
    ).toEqual([])
    expect(problemsOfContents(complete, { ...expected, parts: [...expected.parts, 'bin/tool.cjs'] })).toEqual([
      'bin/tool.cjs is missing',
    ])
  })

  test.each(['dist/old.js', 'dist/types/old.d.ts', 'src/index.ts', 'tsconfig.json'])(
    'a package must not contain %s',
    (stray) => {
      expect(problemsOfContents([...complete, stray], expected)).toEqual([`${stray} does not belong in the package`])
    },
  )
})

describe('the errors of a compiler', () => {
  const text = "import { made } from 'a'\n// says: 'limt' does not exist\nmade({ limt: 1 })\n"
  const error = "mistakes.ts(3,8): error TS1: Wrong.\n  Property 'limt' does not exist.\n"

  test('errors that say what is expected cause no problem', () => {
    expect(problemsOfErrors(text, error)).toEqual([])
  })

  test('an error that says something else, is not expected or is missing is a problem', () => {
    expect(problemsOfErrors(text, error.replace('limt', 'name'))).toEqual(["3: expected 'limt' does not exist"])
    expect(problemsOfErrors(text, '')).toEqual(["3: expected 'limt' does not exist"])
    expect(problemsOfErrors(text, `${error}mistakes.ts(1,1): error TS2: No.\n`)).toEqual([
      '1: not expected: error TS2: No.\n',
    ])
  })
})

describe('the sizes of bundles', () => {
  const known = { memory: 1000, redis: 2000 }

  test('bundles within 5 % of their known sizes cause no problem', () => {
    expect(problemsOfBundles({ memory: 1050, redis: 1900 }, known)).toEqual([])
  })

  test.each([1051, 949])('a bundle of %d bytes in place of 1000 is a problem', (memory) => {
    expect(problemsOfBundles({ memory, redis: 2000 }, known)).toEqual([
      `memory: ${memory} bytes, more than 5 % from 1000`,
    ])
  })

  test('a bundle without a known size is a problem', () => {
    expect(problemsOfBundles({ other: 10 }, known)).toEqual(['other: 10 bytes, more than 5 % from 0'])
  })

  test('a kind of cell that no limit uses is a problem in memory, and none on Redis', () => {
    const inputs = { 'module/kinds/log.js': 500, 'module/kinds/counter.js': 400, 'module/kinds/bucket.js': 0 }
    const problem = 'Koa, in memory: module/kinds/counter.js is in the bundle, though no limit needs it'
    expect(problemsOfKinds('Koa, in memory', inputs)).toEqual([problem])
    expect(problemsOfKinds('Koa, on Redis', inputs)).toEqual([])
  })
})

describe('the Node version', () => {
  test.each(['20.19.0', '20.20.2', '22.0.0', '24.1.0'])('Node %s is accepted', (version) => {
    expect(() => requireNode(version, '>=20.19')).not.toThrow()
  })

  test.each(['20.18.3', '18.20.0'])('Node %s is rejected', (version) => {
    expect(() => requireNode(version, '>=20.19')).toThrow(`Node >=20.19 is needed, this is ${version}`)
  })
})

/** What a function finds in a file with this text. */
function inFile<Found>(text: string, find: (files: string[]) => Found): Found {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-checks-'))
  try {
    const file = join(folder, 'example.ts')
    writeFileSync(file, text)
    return find([file])
  } finally {
    rmSync(folder, { recursive: true })
  }
}

describe('regular expressions', () => {
  test('the regular expressions of a file are found, and neither texts nor comments', () => {
    const text = "// /a/\nconst a = /b+/g.exec('/c/')\nconst d = e / f / g\nconst h = { i: [/[/]j/] }\n"
    expect(inFile(text, patternsIn).map(({ text }) => text)).toEqual(['/b+/g', '/[/]j/'])
  })

  test.each(['/^a+$/', '/[^/]+/g', '/(\\d+)([a-z]+)/gy', '/^(?:a|b)*c/i'])('%s takes linear time', (pattern) => {
    expect(problemOfPattern(pattern)).toBeUndefined()
  })

  test.each([
    ['/a+$/', '2nd degree polynomial'],
    ['/[^@]+@[^@]+\\.[^@]+/', 'polynomial'],
    ['/^(a+)+$/', 'exponential'],
  ])('%s takes more than linear time, and the problem names a text that does', (pattern, time) => {
    expect(problemOfPattern(pattern)).toMatch(new RegExp(`${time}.* time for '`))
  })
})

describe('the sizes of classes and functions', () => {
  const lines = (count: number) => Array.from({ length: count }, (_, i) => `  step(${i})`).join('\n')

  const sizesOf = (text: string) => inFile(text, sizesIn).map(({ file: _, ...size }) => size)

  test('the size of a class or function is its lines without docstrings, and its private fields', () => {
    const text = `
/** Says what it is. */
export class Example {
  readonly #first = 1
  private second = 2
  third = 3
  constructor() {
    const later = () => {
      this.#method()
    }
  }
  /** Not a field. */
  #method() {}
}
const made = function () {}
`
    expect(sizesOf(text)).toEqual([
      { name: 'Example', lines: 12, fields: 2 },
      { name: 'Example.constructor', lines: 5 },
      { name: 'Example.constructor.later', lines: 3 },
      { name: 'Example.#method', lines: 1 },
      { name: 'made', lines: 1 },
    ])
  })

  test('a size above 60 lines, 400 lines or 15 private fields is a problem', () => {
    const fields = Array.from({ length: 16 }, (_, i) => `  #field${i} = ${i}`).join('\n')
    const problems = (text: string) =>
      problemsOfSizes(
        sizesOf(text).map((size) => ({ ...size, file: 'a.ts' })),
        {},
      )
    expect(problems(`function fits() {\n${lines(58)}\n}`)).toEqual([])
    expect(problems(`function long() {\n${lines(59)}\n}`)).toEqual(['a.ts: long has 61 lines, more than 60'])
    expect(problems(`class Wide {\n${fields}\n}`)).toEqual(['a.ts: Wide has 16 private fields, more than 15'])
    expect(problems(`class Long {\n${'  ready = 1\n'.repeat(399)}}`)).toEqual([
      'a.ts: Long has 401 lines, more than 400',
    ])
  })

  test('an exception for a size must be needed', () => {
    const sizes = [{ file: 'a.ts', name: 'long', lines: 61 }]
    expect(problemsOfSizes(sizes, { long: 'is a table' })).toEqual([])
    expect(problemsOfSizes(sizes, { long: 'is a table', short: 'was long' })).toEqual([
      'the exception for short is not needed',
    ])
  })
})

describe('rooms', () => {
  const table = {
    entries: ['entries'],
    pure: ['kernels'],
    rooms: { kernels: [], base: ['kernels'], top: ['base'] },
    inner: { top: { isBelow: true, rooms: { low: [], high: ['low'] } } },
    why: { top: 'It stands above.' },
  }

  test.each([
    ['top/a.ts', 'base/b.js'],
    ['top/low/a.ts', 'base/b.js'],
    ['top/high/a.ts', 'top/low/b.js'],
    ['top/a.ts', 'top/high/b.js'],
    ['entries/a.ts', 'top/high/b.js'],
    ['a.ts', 'top/high/b.js'],
    ['kernels/a.ts', 'kernels/b.js'],
  ])('%s may import %s', (from, to) => {
    expect(problemInside('core', table, from, to)).toBeUndefined()
  })

  test.each([
    ['base/a.ts', 'top/b.js', 'core/base imports core/top; of core it may import kernels. It stands above.'],
    ['kernels/a.ts', 'base/b.js', 'core/kernels imports core/base; of core it may import no other folder.'],
    ['kernels/a.ts', 'b.js', 'core/kernels imports b.js, a file beside it; of core it may import no other folder.'],
    ['top/low/a.ts', 'top/high/b.js', 'core/top/low imports core/top/high; of core/top it may import no other folder.'],
    ['top/high/deep/a.ts', 'top/b.js', 'core/top/high imports b.js, a file beside it; of core/top it may import low.'],
    [
      'top/a.ts',
      'entries/b.js',
      'core/top imports core/entries; of core it may import base. Entries compose all else.',
    ],
  ])('%s may not import %s', (from, to, problem) => {
    expect(problemInside('core', table, from, to)).toBe(problem)
  })

  test.each([
    ['packages/core/src/kernels/a.ts', 'node:fs', 'it is pure'],
    ['packages/core/src/redis/a.ts', 'ioredis/built', 'never express, koa'],
    ['packages/koa/src/a.ts', '@sluice/core/internal', 'An adapter is glue'],
    ['packages/koa/src/a.ts', '../../core/src/index.js', 'packages import others by their names'],
  ])('%s may not import %s', (file, imported, problem) => {
    expect(problemOf(file, imported)).toContain(problem)
  })

  test.each([
    ['packages/core/src/redis/a.ts', 'node:fs'],
    ['packages/koa/src/a.ts', 'koa'],
    ['packages/koa/src/a.ts', '@sluice/core/http'],
  ])('%s may import %s', (file, imported) => {
    expect(problemOf(file, imported)).toBeUndefined()
  })

  test('each import of a file is checked, with its line: types, dynamic ones and what is exported again', () => {
    const wrong = '../http/guard/guard.js'
    const text = [
      `// import '${wrong}'`,
      `import type { A } from '${wrong}'`,
      `export * from '${wrong}'`,
      `const b = import('${wrong}')`,
      `let c: import('${wrong}').C`,
      `declare module '${wrong}' {}`,
      `import { d } from '../util/d.js'`,
    ].join('\n')
    const lines = problemsOfImports('packages/core/src/limiter/a.ts', text).map((problem) => problem.split(':')[1])
    expect(lines).toEqual(['2', '3', '4', '5'])
  })

  test('a room that is not there, and a folder without a room, are problems of the table', () => {
    const folders = (folder: string) => (folder === 'src' ? ['base', 'other'] : [])
    expect(problemsOfTable('src', { rooms: { base: ['bass'] } }, folders)).toEqual([
      'src/base: there is no room bass beside it',
      'src/other: scripts/lib/rooms.js does not say what it may import',
    ])
  })
})

describe('options in an editor', () => {
  const limit = { name: 'limit', text: 'Units per window.', tags: ['default'] }

  test('an option that is offered with one line and its default is no problem', () => {
    expect(problemsOfCompletions([limit], ['limit'])).toEqual([])
  })

  test('an option without a default, a sentence or an end, and one that is hidden, are problems', () => {
    const shown = [
      { ...limit, text: `${limit.text} ${'More. '.repeat(30)}` },
      { name: 'key', text: 'long '.repeat(40), tags: ['default'] },
      { name: 'old', text: '', tags: ['deprecated'] },
      { name: 'other', text: '', tags: [] },
    ]
    expect(problemsOfCompletions(shown, ['limit', 'key', 'old', 'missing'])).toEqual([
      'missing is not offered',
      'limit: its first paragraph has 198 characters',
      'limit has 198 characters',
      'key: its first paragraph has 200 characters',
      'key has 200 characters',
      'old has no default',
      'old is offered',
      'old: its first paragraph has 0 characters',
      'other is offered, and no option',
    ])
  })

  test('a name of another library that is struck through is no problem', () => {
    expect(problemsOfCompletions([limit, { name: 'max', text: '', tags: ['deprecated'] }], ['limit'])).toEqual([])
  })
})
