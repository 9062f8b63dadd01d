import { Lexer } from 'yaml'
import { MAX_DEPTH } from './plain.js'

/** Longest document, in characters. */
export const MAX_TEXT = 8_388_608

/**
 * Most words and marks of YAML or JSON: names, values, commas, colons, line breaks and the like. An override takes 26 to 50, so
 * that 1,000 policies with 10,000 overrides are half of it. A document within it is read within seconds.
 */
const MAX_MARKS = 1_000_000

/** Most aliases, two for each of 10,000 overrides: the parser takes longer for them than for other words. */
const MAX_ALIASES = 20_000

/** Longest value or name, in characters: the body of a response has 100,000. */
const MAX_VALUE = 262_144

/** How deep indentation and dashes may be nested in all: the parser needs stack for each. Each bracket is a level. */
const MAX_NESTED = 200

/** Ends the reading of a text before there are values of it. */
export class Refused extends Error {
  /** The position, in characters from its start. */
  readonly offset: number

  constructor(message: string, offset = 0) {
    super(message)
    this.offset = offset
  }
}

/** YAML permits tabs, line ends and U+0085 among them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f]/

/** `U+001B` */
function nameOf(code: number): string {
  return `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * The words and marks of a text, for the parser. It overflows the stack where they are nested too deep, which may end the
 * process. They are counted during parsing, so that no document takes longer than the largest accepted one.
 *
 * @throws Refused
 */
export function* lexemesOf(text: string): Generator<string> {
  if (text.length > MAX_TEXT) throw new Refused(`expected at most ${MAX_TEXT} characters, got ${text.length}`)
  const control = text.search(CONTROL)
  if (control >= 0)
    throw new Refused(`expected no control characters, got ${nameOf(text.charCodeAt(control))}`, control)
  let at = 0
  let count = 0
  let aliases = 0
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
    if (flow > MAX_DEPTH || line > MAX_NESTED) throw new Refused(`expected at most ${MAX_DEPTH} levels`, at)
    if (++count > MAX_MARKS) {
      const advice = 'overrides of many clients can be in a table of PostgreSQL'
      throw new Refused(`expected at most ${MAX_MARKS} words and marks in all: ${advice}`, at)
    }
    if (first === '*' && ++aliases > MAX_ALIASES) {
      throw new Refused(`expected at most ${MAX_ALIASES} aliases`, at)
    }
    if (lexeme.length > MAX_VALUE && first !== '#') {
      throw new Refused(`expected at most ${MAX_VALUE} characters in one value, got ${lexeme.length}`, at)
    }
    yield lexeme
    // Marks of the lexer are no text.
    if (!MARKS_OF_LEXER.includes(lexeme)) at += lexeme.length
  }
}

/** A document begins, its flow ends, a scalar follows. */
const MARKS_OF_LEXER = ['\u0002', '\u0018', '\u001f']

/** Whether a lexeme may stand before the first indicator of a line. */
function isBefore(lexeme: string): boolean {
  return lexeme === '\u0002' || lexeme === '\uFEFF' || lexeme === '---' || lexeme[0] === '&' || lexeme[0] === '!'
}
