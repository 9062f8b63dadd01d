import { describe, expect, test } from 'vitest'
import { findingsOf } from '../../scripts/prose.js'

const words = (count: number) => `The ${'very '.repeat(count - 3)}long way.`
const page = (text: string) => findingsOf('docs/page.md', text)
const texts = (sentences: readonly { readonly text: string }[]) => sentences.map(({ text }) => text)

describe('a page', () => {
  test.each([
    [30, [], []],
    [31, [31], []],
    [45, [45], []],
    [46, [], [46]],
  ])('a sentence of %i words is counted by its length', (count, long, tooLong) => {
    const found = page(words(count))
    expect(found.long.map(({ words }) => words)).toEqual(long)
    expect(found.tooLong.map(({ words }) => words)).toEqual(tooLong)
  })

  test('a sentence can span lines, and is found at its first line', () => {
    const found = page(`# Title\n\nA short one.\nAnother. ${words(40).replaceAll(' very', '\nvery')}\n`)
    expect(found.long).toMatchObject([{ line: 4, words: 40, text: words(40) }])
  })

  test.each([
    ['the item of a list', (half: string) => `- ${half}\n- ${half}\n1. ${half}`],
    ['a cell of a table', (half: string) => `| ${half} | ${half} |\n|---|---|\n| ${half} | ${half} |`],
    ['a heading', (half: string) => `## ${half}\n${half}`],
    ['a paragraph', (half: string) => `${half}\n\n${half}`],
    ['a block of code', (half: string) => `${half}\n\`\`\`ts\n${half}\n\`\`\`\n${half}`],
  ])('%s ends a sentence', (_, written) => {
    expect(page(written('very '.repeat(29)))).toMatchObject({ long: [], tooLong: [] })
  })

  test('code counts as one word, and a link as its text', () => {
    const sentence = (extra: string) => `The ${extra} ${'very '.repeat(26)}long way.`
    expect(page(sentence('`a. b + c d`')).long).toEqual([])
    expect(page(sentence('[link](there.html "to")')).long).toEqual([])
    expect(page(sentence('[two words](there.html)')).long).toMatchObject([{ words: 31 }])
  })

  test('a sentence may begin with code', () => {
    expect(page(`${words(20)} \`max\` is ${words(20)}`)).toMatchObject({ long: [], tooLong: [] })
  })

  test('a block of code has no sentences', () => {
    expect(page(`\`\`\`ts\n// ${words(50)} What he told.\n\`\`\``)).toEqual({
      long: [],
      tooLong: [],
      begins: [],
      words: [],
    })
  })

  test('a sentence that begins with "What", "Of" or "So" is found', () => {
    const found = page(
      'What it counts. **Of** these, one. So it is. Often, somebody asks what he whatever.\n\n- What else',
    )
    expect(texts(found.begins)).toEqual(['What it counts.', '**Of** these, one.', 'So it is.', 'What else'])
  })

  test('a word of the list is found in each sentence', () => {
    expect(texts(page('It is told of. It pardons them; `mostKeys` is kept.').words)).toEqual([
      'told: It is told of.',
      'pardons: It pardons them; `mostKeys` is kept.',
      'mostKeys: It pardons them; `mostKeys` is kept.',
      'kept: It pardons them; `mostKeys` is kept.',
    ])
  })
})

describe('a program', () => {
  const code = (text: string) => findingsOf('packages/core/src/file.ts', text)

  test('a comment is read across its lines', () => {
    const found = code(
      `/**\n * What it does.\n *\n * @param a what is\n *   told\n */\nf(1) // So.\n// One that\n// is kept.\n`,
    )
    expect(found.begins).toMatchObject([
      { line: 2, text: 'What it does.' },
      { line: 7, text: 'So.' },
    ])
    expect(found.words).toMatchObject([
      { line: 4, text: expect.stringContaining('told') },
      { line: 8, text: 'kept: One that is kept.' },
    ])
  })

  test('a message of four words or more is read', () => {
    const message = `So \${a + 'b'} is not known`
    expect(texts(code(`throw new Error(\`${message}\`)\nf('So it is')`).begins)).toEqual([message])
  })

  test('a literal of several lines is not read, as it contains SQL or Lua', () => {
    expect(code('run(`What is told\nto a database`)')).toEqual({ long: [], tooLong: [], begins: [], words: [] })
  })

  test('an example in a comment is not read', () => {
    expect(code(`/**\n * @example\n * What it is.\n * @param a What\n */`).begins).toMatchObject([
      { line: 4, text: 'What' },
    ])
  })

  test('code outside of comments and texts is not read', () => {
    expect(code('const What = told // fine\n')).toEqual({ long: [], tooLong: [], begins: [], words: [] })
  })
})

describe('a test', () => {
  const code = (text: string) => findingsOf('test/unit/file.test.ts', text)

  test('the name of a test is read, and may begin with a small letter', () => {
    const found = code(`test('of two, one', () => {})\ntest.each([[1], f(2)])('what %s is', f)\ndescribe('fine', f)\n`)
    expect(found.begins).toMatchObject([
      { line: 1, text: 'of two, one' },
      { line: 2, text: 'what %s is' },
    ])
  })

  test('other texts of a test are not read', () => {
    expect(code(`expect(f('What he was told of')).toBe(1)`)).toEqual({ long: [], tooLong: [], begins: [], words: [] })
  })
})
