// Reports on the style of the prose: npm run prose [-- file …] [-- --check]
// Counts long sentences, sentences whose first word delays the subject, and words that have a better one. Reads the
// documentation, and the messages, comments and test names of the code. With files, it lists each place in them. With --check,
// it fails for a sentence of more than 45 words.
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'

/** @typedef {{ line: number, text: string, isTestName?: boolean }} Passage text between two ends that every sentence has */
/** @typedef {{ line: number, text: string, words: number, isTestName: boolean }} Sentence */
/** @typedef {{ long: Sentence[], tooLong: Sentence[], begins: Sentence[], words: Sentence[] }} Findings */

/** Words that a sentence has at most, and that no sentence may exceed. */
const LONG = 30
const TOO_LONG = 45

/** Beginnings after which the subject comes late, or never. */
const BEGINNINGS = /^(What|Of|So)\b/

/**
 * Each has a better word: *record*, *clear*, *strike*, *suspect*, *known block*, *identity*, *request* and *result*, `max…`,
 * `timeout`. Not here, as English has other meanings for them: *place* (permit), *cell* (of an array), *later* (a value
 * that may be a promise).
 */
const WORDS = [
  'hear(?:s|d|ing)?',
  'hearWhole',
  'tell(?:s|ing)?',
  'told',
  'pardon(?:s|ed|ing)?',
  'springs?',
  'sprang',
  'sprung',
  'doubt(?:s|ed|ful|less)?',
  'held entr(?:y|ies)',
  'kept',
  'subjects?',
  'ReadablePlan',
  'most[A-Z]\\w*',
  'timeoutMs',
  'asks',
  'answers',
  'partAsk',
  'answersOf',
]
const WORD = new RegExp(`\\b(?:${WORDS.join('|')})\\b`, 'g')

/** A capital, so that code begins a sentence like any other word. */
const CODE = 'X'

/** A tag of JSDoc, with its type and the name of its parameter. */
const TAG = /^@\w+(?:[ \t]+\{(?:[^{}]|\{[^{}]*\})*\})?(?:(?<=^@param\b.*)[ \t]+\S+)?/gm

/**
 * Code, a substitution of a template and a link of JSDoc count as one word each. The target of a link and a default count as
 * none.
 */
const MASKS = /** @type {[RegExp, string][]} */ ([
  [/(`+)(?!`).*?[^`]\1(?!`)/g, CODE],
  [/\$\{[^}]*\}/g, CODE],
  [/\{@link[^}]*\}/g, CODE],
  [/\[\p{L}/gu, CODE],
  [/\]\([^)]*\)/g, ')'],
  [/ @default .*/g, ' '],
  [/\*+/g, '"'],
])

const segmenter = new Intl.Segmenter('en', { granularity: 'sentence' })

/**
 * @param {Passage[]} passages
 * @returns {Sentence[]}
 */
function sentencesOf(passages) {
  return passages.flatMap(({ text: lines, line: first, isTestName = false }) => {
    const text = lines.replaceAll('\n', ' ')
    const masked = MASKS.reduce((text, [what, by]) => text.replace(what, (all) => by.repeat(all.length)), text)
    return [...segmenter.segment(masked)].map(({ segment, index }) => ({
      line: first + (lines.slice(0, index).match(/\n/g)?.length ?? 0),
      text: text
        .slice(index, index + segment.length)
        .replace(/\s+/g, ' ')
        .trim(),
      words: segment.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length,
      isTestName,
    }))
  })
}

/**
 * The passages of a Markdown document: paragraphs, headings, items of lists, and cells of tables. Code blocks have none.
 *
 * @param {string} text
 * @param {number} [first] the line of its beginning
 * @returns {Passage[]}
 */
function passagesOfMarkdown(text, first = 1) {
  /** @type {Passage[]} */
  const passages = []
  /** @type {Passage | undefined} */
  let open
  let fence = ''
  for (const [i, line] of text.split('\n').entries()) {
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence !== '' || mark !== undefined) {
      if (fence === '') fence = String(mark)
      else if (mark?.startsWith(fence)) fence = ''
      open = undefined
      continue
    }
    const at = first + i
    const trimmed = line.trim()
    const isTable = trimmed.startsWith('|')
    const bare = trimmed.replace(/^(?:>\s?|[-*+]\s+|\d+\.\s+|#+\s+)+/, '')
    if (isTable) passages.push(...cellsOf(line).map((text) => ({ line: at, text })))
    if (isTable || bare === '') open = undefined
    else if (open && bare === trimmed) open.text += `\n${bare}`
    else {
      passages.push({ line: at, text: bare })
      open = trimmed.startsWith('#') ? undefined : passages.at(-1)
    }
  }
  return passages
}

/** @param {string} row */
const cellsOf = (row) => row.split(/(?<!\\)\|/).filter((cell) => /\w/.test(cell))

/** Comments and literals, whichever begins first; and regular expressions, for the quotes that they hold. */
const TOKENS = new RegExp(
  [
    /\/\*[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n?)+|\/\/.*/,
    /'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/,
    /(?<=[(=,:!&|?[]\s*|return )\/(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\[\n])+\//,
  ]
    .map(({ source }) => source)
    .join('|'),
  'gm',
)
const IS_COMMENT = /^\s*\/[/*]/
const IS_LITERAL = /^['"`]/
/** A call that names a test, up to the name. */
const NAMES_A_TEST = /\b(?:test|it|describe)(?:\.\w+)*\($|\.each(?:\([^()]*(?:\([^()]*\)[^()]*)*\)|`[^`]*`)\(\s*$/
/** A literal of fewer words is a name or a part of a format. */
const SHORTEST_MESSAGE = 4

/**
 * The passages of TypeScript: comments, and the literals that people read, which are messages in packages and names in tests.
 *
 * @param {string} text
 * @param {boolean} isTest
 * @returns {Passage[]}
 */
function passagesOfCode(text, isTest) {
  /** @type {Passage[]} */
  const passages = []
  for (const { 0: token, index } of text.matchAll(TOKENS)) {
    const line = text.slice(0, index).split('\n').length
    if (IS_COMMENT.test(token)) passages.push(...passagesOfMarkdown(commentOf(token), line))
    else if (IS_LITERAL.test(token)) {
      const isTestName = isTest && NAMES_A_TEST.test(text.slice(Math.max(0, index - 2000), index))
      // Over several lines it is a program, in SQL or Lua.
      const isMessage = !isTest && !token.includes('\n') && token.split(/\s+/).length >= SHORTEST_MESSAGE
      if (isTestName || isMessage) passages.push({ line, text: token.slice(1, -1), isTestName })
    }
  }
  return passages
}

/**
 * A comment without its marks, as many lines as before. Each tag of JSDoc begins a paragraph; examples are code.
 *
 * @param {string} comment
 */
function commentOf(comment) {
  return comment
    .replace(/^\s*\/\*\*?|\*\/$/g, '')
    .replace(/^[ \t]*(?:\*|\/\/)[ \t]?/gm, '')
    .replace(/^@example[^@]*/gm, (code) => code.replace(/.+/g, ''))
    .replace(TAG, '- ')
}

/**
 * The findings in a file.
 *
 * @param {string} file by whose name its text is read as documentation, a test, or another program
 * @param {string} text
 * @returns {Findings}
 */
export function findingsOf(file, text) {
  const passages = file.endsWith('.md') ? passagesOfMarkdown(text) : passagesOfCode(text, file.startsWith('test/'))
  const sentences = sentencesOf(passages)
  return {
    long: sentences.filter(({ words }) => words > LONG && words <= TOO_LONG),
    tooLong: sentences.filter(({ words }) => words > TOO_LONG),
    begins: sentences.filter(({ text, isTestName }) =>
      BEGINNINGS.test((isTestName ? text.charAt(0).toUpperCase() + text.slice(1) : text).replace(/^["'(*]+/, '')),
    ),
    words: sentences.flatMap((sentence) =>
      [...sentence.text.matchAll(WORD)].map(([word]) => ({ ...sentence, text: `${word}: ${sentence.text}` })),
    ),
  }
}

/** @returns {string[]} files whose prose people read, from the root */
function filesOfProse() {
  /** @param {string} folder @param {RegExp} name */
  const within = (folder, name) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => name.test(file) && !/node_modules|\.tmp|\.generated\.ts$/.test(file))
      .map((file) => join(folder, file))
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}`)
  return [
    ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'ARCHITECTURE.md', 'CHANGELOG.md'],
    ...within('docs', /^[^/]*\.md$/),
    ...packages.map((folder) => `${folder}/README.md`),
    ...packages.flatMap((folder) => within(`${folder}/src`, /\.ts$/)),
    ...within('test', /\.ts$/),
  ].sort()
}

const KINDS = /** @type {const} */ (['long', 'tooLong', 'begins', 'words'])

/** @param {Findings} findings @returns {number[]} */
const countsOf = (findings) => KINDS.map((kind) => findings[kind].length)

/** @param {(string | number)[]} counts @param {string} name */
const row = (counts, name) => `${counts.map((count) => String(count).padStart(7)).join('')}  ${name}`

/** @param {string} file @param {Findings} findings @returns {string[]} */
function placesOf(file, findings) {
  /** @param {Sentence[]} sentences @param {(sentence: Sentence) => string} why */
  const places = (sentences, why) =>
    sentences.map((sentence) => /** @type {const} */ ([sentence.line, `${why(sentence)}: ${sentence.text}`]))
  return [
    ...places([...findings.long, ...findings.tooLong], ({ words }) => `${words} words`),
    ...places(findings.begins, () => 'begins'),
    ...places(findings.words, () => 'word'),
  ]
    .sort(([a], [b]) => a - b)
    .map(([line, text]) => `${file}:${line}: ${text}`)
}

await whenStarted(import.meta.url, () => {
  const args = process.argv.slice(2)
  const named = args.filter((arg) => !arg.startsWith('--')).map((arg) => relative(root, resolve(arg)))
  const isCheck = args.includes('--check')
  const found = (named.length > 0 ? named : filesOfProse()).map(
    (file) => /** @type {const} */ ([file, findingsOf(file, readFileSync(join(root, file), 'utf8'))]),
  )
  if (isCheck) {
    const tooLong = found.flatMap(([file, { tooLong }]) => tooLong.map(({ line, text }) => `${file}:${line}: ${text}`))
    if (tooLong.length > 0) throw new Error(`Sentences of more than ${TOO_LONG} words:\n${tooLong.join('\n')}`)
    console.log(`no sentence has more than ${TOO_LONG} words`)
    return
  }
  for (const [file, findings] of named.length > 0 ? found : []) console.log(placesOf(file, findings).join('\n'))
  console.log(row([`> ${LONG}`, `> ${TOO_LONG}`, 'begins', 'words'], 'file'))
  const counted = found.map(([file, findings]) => /** @type {const} */ ([file, countsOf(findings)]))
  for (const [file, counts] of counted) if (counts.some((count) => count > 0)) console.log(row(counts, file))
  console.log(
    row(
      KINDS.map((_, i) => counted.reduce((sum, [, counts]) => sum + Number(counts[i]), 0)),
      'all',
    ),
  )
})
