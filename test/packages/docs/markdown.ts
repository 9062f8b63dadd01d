/** A code block of a document, with what the document says for its test alone. */
export interface Block {
  /** Such as `README.md:42`. */
  readonly where: string
  readonly language: 'ts' | 'js'
  readonly code: string
  /** Code that runs before it: what a reader is expected to have already. */
  readonly before: string
  /** Code that runs after it: what it is expected to do. */
  readonly after: string
  /** HTTP messages shown below it, up to the next code block. */
  readonly shown: readonly string[]
}

export interface Fence {
  readonly line: number
  readonly language: string
  readonly text: string
}

type Piece = Fence & { readonly kind: 'fence' | 'before' | 'after' }

/**
 * The `ts` and `js` blocks of a Markdown document, in order. An HTML comment `before` right above a block and one
 * `after` below it hold code for its test, which readers do not see.
 */
export function blocksOf(name: string, text: string): Block[] {
  const pieces = piecesOf(text)
  const blocks: (Block & { shown: string[] })[] = []
  let before = ''
  for (const [i, { kind, line, language, text }] of pieces.entries()) {
    const last = blocks.at(-1)
    if (kind === 'before') {
      if (pieces[i + 1]?.line !== line + lengthOf(text)) throw new Error(`${name}:${line}: not right above a block`)
      before = text
    } else if (kind === 'after') {
      const above = pieces[i - 1]
      if (!last || !above || line !== above.line + lengthOf(above.text)) {
        throw new Error(`${name}:${line}: not right below a block`)
      }
      blocks[blocks.length - 1] = { ...last, after: last.after + text }
    } else if (language === 'ts' || language === 'js') {
      blocks.push({ where: `${name}:${line}`, language, code: text, before, after: '', shown: [] })
      before = ''
    } else if (language === 'http') {
      if (!last) throw new Error(`${name}:${line}: an HTTP message that no block sends`)
      last.shown.push(text)
    }
  }
  return blocks
}

/** Lines of a piece, with those that open and close it. */
const lengthOf = (text: string) => text.split('\n').length + 1

/** Every fenced block of a document, whatever its language. */
export function fencesOf(text: string): Fence[] {
  return piecesOf(text).filter(({ kind }) => kind === 'fence')
}

function piecesOf(text: string): Piece[] {
  const pieces: Piece[] = []
  const lines = text.split('\n')
  for (let i = 0; i < lines.length; i++) {
    const start = i
    const [, indent = '', language] = /^( *)```(\S*)/.exec(lines[i] as string) ?? []
    const [, kind] = /^<!-- (before|after)$/.exec(lines[i] as string) ?? []
    if (language === undefined && kind === undefined) continue
    const end = kind ? '-->' : `${indent}\`\`\``
    const body: string[] = []
    for (i++; lines[i] !== end; i++) {
      if (i >= lines.length) throw new Error(`line ${start + 1}: no end to this block`)
      body.push((lines[i] as string).slice(indent.length))
    }
    pieces.push({
      kind: (kind as 'before' | 'after' | undefined) ?? 'fence',
      line: start + 1,
      language: language ?? '',
      text: `${body.join('\n')}\n`,
    })
  }
  return pieces
}
