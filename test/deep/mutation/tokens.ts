/** A piece of a line of Lua, from column `from` to before column `to`. */
export interface Token {
  readonly text: string
  readonly from: number
  readonly to: number
  /** `value`: a name, a number or a string; `word`: a keyword; otherwise an operator or a bracket. */
  readonly kind: 'value' | 'word' | 'sign'
}

const PIECES = /--.*$|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\.{2,3}|[<>=~]=|[A-Za-z_]\w*|\d+(?:\.\d+)?|\S/g
const KEYWORDS = new Set(
  'and break do else elseif end for function if in local not or repeat return then until while'.split(' '),
)

/** The code of one line, without its comment. The build rejects long brackets. */
export function tokensOf(line: string): Token[] {
  return [...line.matchAll(PIECES)].flatMap(({ 0: text, index: from }): Token[] => {
    if (text.startsWith('--')) return []
    const kind = KEYWORDS.has(text) ? 'word' : /^[\w'"]/.test(text) ? 'value' : 'sign'
    return [{ text, from, to: from + text.length, kind }]
  })
}
