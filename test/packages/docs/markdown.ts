/** A code block of a document, with the additions of its sidecar for the test. */
export interface Block {
  /** For example `README.md:42`. */
  readonly where: string
  /** The name of its sidecar: `name=…` in the fence's info string; empty without one. */
  readonly name: string
  readonly language: 'ts' | 'js'
  readonly code: string
  /** Code that runs before it: the reader's assumed context. */
  readonly before: string
  /** Code that runs after it, to check its effect. */
  readonly after: string
  /** HTTP messages shown below it, up to the next code block. */
  readonly shown: readonly string[]
}

export interface Fence {
  readonly line: number
  readonly language: string
  /** The part of the info string after the language. */
  readonly info: string
  readonly text: string
}

/** The code around one block. */
export interface Sidecar {
  before: string
  after: string
}

/**
 * The `ts` and `js` blocks of a Markdown document, in order, each with its entry in `sidecars`.
 * Throws for a name that two blocks have, and for a sidecar without a block.
 */
export function blocksOf(document: string, text: string, sidecars: ReadonlyMap<string, Sidecar> = new Map()): Block[] {
  const blocks: (Block & { shown: string[] })[] = []
  const left = new Map(sidecars)
  for (const { line, language, info, text: code } of fencesOf(text)) {
    const where = `${document}:${line}`
    if (language === 'ts' || language === 'js') {
      const name = /^name=([\w-]+)$/.exec(info)?.[1] ?? ''
      if (info !== '' && name === '') throw new Error(`${where}: expected name=… after the language, got ${info}`)
      if (name !== '' && blocks.some((block) => block.name === name)) {
        throw new Error(`${where}: a second block is named ${name}`)
      }
      const { before, after } = left.get(name) ?? { before: '', after: '' }
      left.delete(name)
      blocks.push({ where, name, language, code, before, after, shown: [] })
    } else if (language === 'http') {
      const last = blocks.at(-1)
      if (!last) throw new Error(`${where}: an HTTP message that no block sends`)
      for (const block of blocks) if (block === last || isTwin(block.name, last.name)) block.shown.push(code)
    }
  }
  if (left.size > 0) throw new Error(`${document}: a sidecar for no block: ${[...left.keys()].join(', ')}`)
  return blocks
}

/** Whether two blocks are one sample in two frameworks, as `login` and `login-koa` are: the same messages follow both. */
function isTwin(name: string, other: string): boolean {
  const base = other.replace(FRAMEWORK, '')
  return base !== other && name.replace(FRAMEWORK, '') === base
}
const FRAMEWORK = /-(?:koa|fastify|nestjs)$/

/** The block of `blocks` that another imports as a file: `./app.js` is the block `app`, from `test-koa` the block `app-koa`. */
export function importedBlock<T extends Pick<Block, 'name'>>(from: string, file: string, blocks: readonly T[]): T {
  const name = file + (FRAMEWORK.exec(from)?.[0] ?? '')
  const found = blocks.find((block) => block.name === name)
  if (!found) throw new Error(`${from} imports ./${file}.js, and no block is named ${name}`)
  return found
}

/**
 * A sidecar file: a heading `## name` per block, and below it a fence `ts before`, one `ts after`, or both. Blocks that share
 * them are named in one heading: `## login, login-koa`.
 */
export function sidecarsOf(file: string, text: string): Map<string, Sidecar> {
  const sidecars = new Map<string, Sidecar>()
  const headings = [...text.matchAll(/^## ([\w-]+(?:, [\w-]+)*)$/gm)]
  for (const [i, heading] of headings.entries()) {
    const names = heading[1] as string
    const sidecar: Sidecar = { before: '', after: '' }
    for (const { info, text: code } of fencesOf(text.slice(heading.index, headings[i + 1]?.index))) {
      if (info !== 'before' && info !== 'after')
        throw new Error(`${file}: ${names}: expected before or after, got ${info}`)
      sidecar[info] = code
    }
    for (const name of names.split(', ')) {
      if (sidecars.has(name)) throw new Error(`${file}: two sidecars named ${name}`)
      sidecars.set(name, sidecar)
    }
  }
  return sidecars
}

/** Every fenced block of a document, whatever its language. */
export function fencesOf(text: string): Fence[] {
  const fences: Fence[] = []
  const lines = text.split('\n')
  for (let i = 0; i < lines.length; i++) {
    const line = i + 1
    const [, indent = '', language, info = ''] = /^( *)```(\S*) *(.*)$/.exec(lines[i] as string) ?? []
    if (language === undefined) continue
    const body: string[] = []
    for (i++; lines[i] !== `${indent}\`\`\``; i++) {
      if (i >= lines.length) throw new Error(`line ${line}: no end to this block`)
      body.push((lines[i] as string).slice(indent.length))
    }
    fences.push({ line, language, info, text: `${body.join('\n')}\n` })
  }
  return fences
}
