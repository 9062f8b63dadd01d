import { Lexer } from 'yaml'
import { MOST_DEPTH } from './plain.js'

/** How deep brackets, indentation and dashes may be nested in all: the parser needs stack for each. */
const MOST_NESTED = 200

/** Most aliases: each stands for one value at least, and `MOST_BY_ALIASES` is the most that they may stand for. */
const MOST_ALIASES = 50_000

/**
 * What is too much in a text to be parsed, and where, in characters from its start; undefined where nothing is. To be asked
 * before the parser, which runs out of stack otherwise, and with it the process may, or takes seconds for what is refused after it.
 */
export function tooMuchIn(text: string): { readonly offset: number; readonly message: string } | undefined {
  let aliases = 0
  let at = 0
  let flow = 0
  let line = 0
  let isStart = true
  for (const token of new Lexer().lex(text)) {
    const first = token[0] as string
    if (first === '\n' || first === '\r') {
      line = 0
      isStart = true
    } else if (token === '[' || token === '{') flow++
    else if (token === ']' || token === '}') flow = Math.max(0, flow - 1)
    else if (isStart) {
      if (token === '-' || token === '?') line++
      else if (first === ' ' || first === '\t') line += token.length
      else isStart = isBefore(token)
    }
    if (flow + line > MOST_NESTED) return { offset: at, message: `expected at most ${MOST_DEPTH} levels` }
    if (first === '*' && ++aliases > MOST_ALIASES) {
      return { offset: at, message: `expected at most ${MOST_ALIASES} aliases` }
    }
    // Marks of the lexer are no text.
    if (!MARKS.includes(token)) at += token.length
  }
  return undefined
}

/** The lexer's marks: a document begins, its flow ends, a scalar follows. */
const MARKS = ['\u0002', '\u0018', '\u001f']

/** What may stand before the first indicator of a line. */
function isBefore(token: string): boolean {
  return token === '\u0002' || token === '\uFEFF' || token === '---' || token[0] === '&' || token[0] === '!'
}
