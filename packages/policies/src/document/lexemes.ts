import { Lexer } from 'yaml'
import { MOST_DEPTH } from './plain.js'

/** Longest document, in characters. */
const MOST_TEXT = 8_388_608

/**
 * Most words and marks of YAML or JSON: names, values, commas, colons, line breaks and the like. An override takes 26 to 50, so that
 * 1,000 policies with 10,000 overrides are half of it; what is within it is read within seconds.
 */
const MOST_MARKS = 1_000_000

/** Most aliases: two for each of 10,000 overrides. */
const MOST_ALIASES = 20_000

/** Longest value or name, in characters: the body of a response has 100,000. */
const MOST_VALUE = 262_144

/** How deep indentation and dashes may be nested in all: the parser needs stack for each. Each bracket is a level. */
const MOST_NESTED = 200

/** Ends the reading of a text before there are values of it. */
export class Refused extends Error {
  /** Where, in characters from its start. */
  readonly offset: number

  constructor(message: string, offset = 0) {
    super(message)
    this.offset = offset
  }
}

/**
 * Throws where a text is long beyond all use, or no text, after a glance at each character: to find that by its words takes a hundred
 * times as long. It counts fewer marks than there are; `lexemesOf` counts them all. Yields now and then, for others to have their turn.
 *
 * @throws Refused
 */
export function* glanceAt(text: string): Generator<void> {
  const { length } = text
  if (length > MOST_TEXT) throw new Refused(`expected at most ${MOST_TEXT} characters, got ${length}`)
  let marks = 0
  let aliases = 0
  let before = NEWLINE
  for (let at = 0; at < length; at++) {
    if (at % MOST_AT_ONCE === 0) yield
    const code = text.charCodeAt(at)
    if (code < CLASS.length && CLASS[code] !== ORDINARY) {
      if (CLASS[code] === CONTROL) throw new Refused(`expected no control characters, got ${nameOf(code)}`, at)
      // Each comma and colon has a word beside it.
      if (code === COMMA) marks += 2
      else if (code !== COLON && code !== STAR) marks++
      else if (code === COLON && (isSpace(text.charCodeAt(at + 1)) || isQuote(before))) marks += 3
      else if (code === STAR && isBeforeWord(before) && !isSpace(text.charCodeAt(at + 1))) aliases++
      if (marks > MOST_MARKS) throw tooMany(at)
      if (aliases > MOST_ALIASES) throw new Refused(`expected at most ${MOST_ALIASES} aliases`, at)
    }
    before = code
  }
}

/** Characters that are looked at within a millisecond. */
const MOST_AT_ONCE = 262_144

const NEWLINE = 10
const COMMA = 44
const COLON = 58
const STAR = 42
const ORDINARY = 0
const MARK = 1
const CONTROL = 2
const CLASS = Uint8Array.from({ length: 160 }, (_, code) => {
  if ('\n,:*[]{}'.includes(String.fromCharCode(code))) return MARK
  // YAML has tabs, line ends and U+0085 of them.
  return (code < 32 && code !== 9 && code !== 13) || (code >= 127 && code !== 0x85) ? CONTROL : ORDINARY
})

/** `U+001B` */
function nameOf(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

function isSpace(code: number): boolean {
  return code === 32 || code === NEWLINE || code === 13 || code === 9
}

function isQuote(code: number): boolean {
  return code === 34 || code === 39
}

/** A space, or any of `,[{`. */
function isBeforeWord(code: number): boolean {
  return isSpace(code) || code === COMMA || code === 91 || code === 123
}

function tooMany(offset: number): Refused {
  const advice = 'overrides of many clients can be in a table of PostgreSQL'
  return new Refused(`expected at most ${MOST_MARKS} words and marks in all: ${advice}`, offset)
}

/**
 * The words and marks of a text, for the parser: it runs out of stack where they are nested too deep, and with it the process may.
 *
 * @throws Refused
 */
export function* lexemesOf(text: string): Generator<string> {
  let at = 0
  let count = 0
  let flow = 0
  let line = 0
  let isStart = true
  for (const lexeme of new Lexer().lex(text)) {
    const first = lexeme[0] as string
    if (first === '\n' || first === '\r') {
      line = 0
      isStart = true
    } else if (lexeme === '[' || lexeme === '{') flow++
    else if (lexeme === ']' || lexeme === '}') flow = Math.max(0, flow - 1)
    else if (isStart) {
      if (lexeme === '-' || lexeme === '?') line++
      else if (first === ' ' || first === '\t') line += lexeme.length
      else isStart = isBefore(lexeme)
    }
    if (flow > MOST_DEPTH || line > MOST_NESTED) throw new Refused(`expected at most ${MOST_DEPTH} levels`, at)
    if (++count > MOST_MARKS) throw tooMany(at)
    if (lexeme.length > MOST_VALUE && first !== '#') {
      throw new Refused(`expected at most ${MOST_VALUE} characters in one value, got ${lexeme.length}`, at)
    }
    yield lexeme
    // Marks of the lexer are no text.
    if (!MARKS_OF_LEXER.includes(lexeme)) at += lexeme.length
  }
}

/** A document begins, its flow ends, a scalar follows. */
const MARKS_OF_LEXER = ['\u0002', '\u0018', '\u001f']

/** What may stand before the first indicator of a line. */
function isBefore(lexeme: string): boolean {
  return lexeme === '\u0002' || lexeme === '\uFEFF' || lexeme === '---' || lexeme[0] === '&' || lexeme[0] === '!'
}
