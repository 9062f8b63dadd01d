import { expect, test } from 'vitest'
import { blocksOf, fencesOf, sidecarsOf } from './markdown.js'
import { hasDecorators, programOf } from './program.js'

const TEXT = `
\`\`\`ts name=sum
x + 1 // → 2
\`\`\`

\`\`\`http
HTTP/1.1 200 OK
\`\`\`
\`\`\`sh
ls
\`\`\`
\`\`\`js
fail() // throws "no \\"x\\""
\`\`\`
`

const SIDECARS = `
# a.md

## sum

\`\`\`ts before
const x = 1
\`\`\`

\`\`\`ts after
void x
\`\`\`
`

test('a block has its sidecar, and the messages that follow', () => {
  expect(blocksOf('a.md', TEXT, sidecarsOf('beside/a.md', SIDECARS))).toEqual([
    {
      where: 'a.md:2',
      name: 'sum',
      language: 'ts',
      code: 'x + 1 // → 2\n',
      before: 'const x = 1\n',
      after: 'void x\n',
      shown: ['HTTP/1.1 200 OK\n'],
    },
    {
      where: 'a.md:12',
      name: '',
      language: 'js',
      code: 'fail() // throws "no \\"x\\""\n',
      before: '',
      after: '',
      shown: [],
    },
  ])
  expect(fencesOf(TEXT).map(({ language }) => language)).toEqual(['ts', 'http', 'sh', 'js'])
})

test('one sample in three frameworks has the same messages after it, and one sidecar', () => {
  const fences = ['one', 'x', 'x-koa', 'x-fastify'].map((name) => `\`\`\`ts name=${name}\n1\n\`\`\`\n`)
  const sidecars = sidecarsOf('beside/a.md', '## x, x-koa, x-fastify\n```ts after\nvoid 0\n```\n')
  const blocks = blocksOf('a.md', `${fences.join('')}\`\`\`http\nHTTP/1.1 200 OK\n\`\`\`\n`, sidecars)
  expect(blocks.map(({ shown }) => shown.length)).toEqual([0, 1, 1, 1])
  expect(blocks.map(({ after }) => after)).toEqual(['', 'void 0\n', 'void 0\n', 'void 0\n'])
})

test('the results noted in a block are checked', () => {
  const blocks = blocksOf('a.md', TEXT, sidecarsOf('beside/a.md', SIDECARS))
  const [first, second] = blocks.map((block) => programOf(block, 'support'))
  expect(first).toContain('const x = 1\n\nexpect(x + 1).toEqual(2)\n')
  expect(second).toContain('await expect((async () => { fail() })()).rejects.toThrow("no \\"x\\"")')
})

test('a block imports another of its framework, and has its tests run within one', () => {
  const named = ['app', 'app-koa'].map((name, i) => ({
    ...blocksOf('a.md', `\`\`\`ts name=${name}\n1\n\`\`\``)[0],
    name,
    file: `/a-${i}.ts`,
  }))
  const text = "```ts name=test-koa\nimport { test } from 'vitest'\nimport { a } from './app.js'\n```\n"
  const [block] = blocksOf('a.md', text)
  const program = programOf(block as never, 'support', named as never[])
  expect(program).toContain("import { test } from 'support'\nimport { a } from './a-1.js'\n")
  expect(program).not.toContain("'vitest'")
  expect(() => programOf(block as never, 'support', [])).toThrow(
    'test-koa imports ./app.js, and no block is named app-koa',
  )
})

test('a block with decorators differs from one that only contains an @', () => {
  expect(hasDecorators({ code: 'class A {\n  @RateLimited({})\n  list() {}\n}\n' })).toBe(true)
  expect(hasDecorators({ code: "import { gcra } from '@sluice/core'\n// @ts-check\n" })).toBe(false)
})

test.each([
  ['```ts\n1', '', /no end/],
  ['```ts name=a\n1\n```\n```ts name=a\n1\n```\n', '', /second block is named a/],
  ['```ts named=a\n1\n```\n', '', /expected name=/],
  ['```ts\n1\n```\n', '## a\n```ts after\n1\n```\n', /a sidecar for no block: a/],
  ['```ts name=a\n1\n```\n', '## a\n```ts later\n1\n```\n', /expected before or after/],
  ['```http\nHTTP/1.1 200 OK\n```\n', '', /no block sends/],
])('a malformed document is rejected: %j beside %j', (text, sidecars, message) => {
  expect(() => blocksOf('a.md', text, sidecarsOf('beside/a.md', sidecars))).toThrow(message)
})
