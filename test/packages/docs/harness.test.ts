import { expect, test } from 'vitest'
import { blocksOf, fencesOf } from './markdown.js'
import { hasDecorators, programOf } from './program.js'

const TEXT = `
<!-- before
const x = 1
-->
\`\`\`ts
x + 1 // → 2
\`\`\`
<!-- after
void x
-->
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

test('a block comes with what stands right above and below it, and the messages that follow', () => {
  expect(blocksOf('a.md', TEXT)).toEqual([
    {
      where: 'a.md:5',
      language: 'ts',
      code: 'x + 1 // → 2\n',
      before: 'const x = 1\n',
      after: 'void x\n',
      shown: ['HTTP/1.1 200 OK\n'],
    },
    { where: 'a.md:17', language: 'js', code: 'fail() // throws "no \\"x\\""\n', before: '', after: '', shown: [] },
  ])
  expect(fencesOf(TEXT).map(({ language }) => language)).toEqual(['ts', 'http', 'sh', 'js'])
})

test('what a block says about its own lines is checked', () => {
  const [first, second] = blocksOf('a.md', TEXT).map((block) => programOf(block, 'support'))
  expect(first).toContain('const x = 1\n\nexpect(x + 1).toEqual(2)\n')
  expect(second).toContain('await expect((async () => { fail() })()).rejects.toThrow("no \\"x\\"")')
})

test('a block with decorators is told from one that only has an @ in it', () => {
  expect(hasDecorators({ code: 'class A {\n  @RateLimited({})\n  list() {}\n}\n' })).toBe(true)
  expect(hasDecorators({ code: "import { gcra } from '@sluice/core'\n// @ts-check\n" })).toBe(false)
})

test.each([
  ['```ts\n1', /no end/],
  ['<!-- before\n1\n-->\n\n```ts\n1\n```\n', /not right above a block/],
  ['```ts\n1\n```\n\n<!-- after\n1\n-->\n', /not right below a block/],
  ['```http\nHTTP/1.1 200 OK\n```\n', /no block sends/],
])('a document that means nothing is refused: %j', (text, message) => {
  expect(() => blocksOf('a.md', text)).toThrow(message)
})
