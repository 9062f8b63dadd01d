import { escapeControls } from '@sluice/core/internal'
import {
  type Alias,
  Composer,
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  Parser,
  type YAMLMap,
} from 'yaml'
import { type LocatedProblem, MAX_PROBLEMS, type Path, type Problem, shown, textOfPath } from '../problems/problem.js'
import { lexemesOf, Refused } from './lexemes.js'
import { MAX_DEPTH, Unusable } from './plain.js'

/** Mistakes of the syntax that are reported: each may follow from the one before. */
const MAX_SYNTAX_PROBLEMS = 5

/** Most values of all aliases together: they may explode. */
const MAX_BY_ALIASES = 50_000

/** The value of a text, with the locations of its parts. */
export interface ReadText {
  readonly value: unknown
  readonly problems: readonly Problem[]
  /** Line and column of a value, or of the field itself, from 1. */
  readonly locate: (problem: Problem) => { line: number; column: number }
}

/** Reads YAML 1.2, which JSON is, too. */
export function readText(text: string): ReadText {
  const lines = new LineCounter()
  try {
    const { document, second } = parsed(text, lines)
    const { contents, errors } = document
    const at = (offset: number) => {
      const { line, col } = lines.linePos(offset)
      return { line: Math.max(1, line), column: Math.max(1, col) }
    }
    const reader = new Reader()
    const locate = ({ path, isField, offset }: Problem) =>
      at(offset ?? offsetOf(contents, reader.targets, path, isField))
    if (errors.length > 0) {
      const problems = errors.slice(0, MAX_SYNTAX_PROBLEMS).map(({ message, pos }) => ({
        path: [],
        message: escapeControls(message.split('\n', 1)[0] as string),
        offset: pos[0],
      }))
      return { value: undefined, problems, locate }
    }
    if (second !== undefined) {
      const message = 'expected one document, got a second one'
      return { value: undefined, problems: [{ path: [], message, offset: second }], locate }
    }
    const { problems } = reader
    try {
      return { value: reader.value(contents), problems, locate }
    } catch (error) {
      if (!(error instanceof Unusable)) throw error
      return { value: undefined, problems: [...problems, error.problem], locate }
    }
  } catch (error) {
    if (!(error instanceof Refused)) throw error
    return refused(text, error)
  }
}

/** The parser's tree, and the start of a second document in the text. */
function parsed(text: string, lines: LineCounter): { document: Document; second: number | undefined } {
  lines.addNewLine(0)
  const parser = new Parser(lines.addNewLine)
  let faults = 0
  function* tokens() {
    for (const lexeme of lexemesOf(text)) {
      for (const token of parser.next(lexeme)) {
        yield token
        if (token.type === 'directive') refuseDirective(token)
        if (token.type === 'error' && ++faults === MAX_SYNTAX_PROBLEMS) return
      }
    }
    yield* parser.end()
  }
  // Duplicate fields are found below: the parser compares each field with each.
  const composer = new Composer({ stringKeys: true, uniqueKeys: false, version: '1.2', logLevel: 'error' })
  let document: Document | undefined
  let second: number | undefined
  for (const piece of composer.compose(tokens(), true, text.length)) {
    if (document) {
      second = piece.range[0]
      break
    }
    document = piece as Document
  }
  return { document: document as Document, second }
}

/** In another version, numbers and words mean other values. Tags are not supported. */
function refuseDirective({ source, offset }: { readonly source: string; readonly offset: number }): void {
  if (/^%YAML[ \t]+1[.]2$/.test(source)) return
  throw new Refused(`expected no directive but %YAML 1.2, got ${shown(source)}`, offset)
}

/** No parser has counted the lines. */
function refused(text: string, { message, offset }: Refused): ReadText {
  const before = text.slice(0, offset)
  const line = before.split('\n').length
  const column = offset - before.lastIndexOf('\n')
  return { value: undefined, problems: [{ path: [], message, offset }], locate: () => ({ line, column }) }
}

/** Adds their locations to problems, in the order of these. */
export function locatedBy(
  source: string,
  locate: (problem: Problem) => { line: number; column: number } | undefined,
): (problems: readonly Problem[]) => LocatedProblem[] {
  return (problems) =>
    problems
      // To locate a problem takes time, and there may be one for each field.
      .slice(0, MAX_PROBLEMS)
      .map((problem) => {
        const { line, column } = locate(problem) ?? {}
        return { source, line, column, path: textOfPath(problem.path), message: problem.message }
      })
      .sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
}

/**
 * Makes plain values of nodes. It resolves aliases itself, in the same walk, as `yaml` searches the document for each alias.
 * `maxAliasCount` of `yaml` bounds the uses of one anchor, not the values that all aliases stand for, which checks would walk.
 */
class Reader {
  readonly problems: Problem[] = []
  /** The node of each alias: the last one before it that has its anchor. */
  readonly targets = new Map<Alias, Node>()
  readonly #anchors = new Map<string, Node>()
  /** Nodes with anchors that the walk is in. */
  readonly #open = new Set<Node>()
  /** The path of the current value. */
  readonly #path: (string | number)[] = []
  /** The alias whose values are made. */
  #alias: Pick<Problem, 'path' | 'offset'> | undefined
  #leftByAliases = MAX_BY_ALIASES

  value(node: unknown): unknown {
    if (this.#path.length > MAX_DEPTH) {
      throw new Unusable({ path: [...this.#path], message: `expected at most ${MAX_DEPTH} levels` })
    }
    if (isAlias(node)) return this.#valueOfAlias(node)
    if (this.#alias && --this.#leftByAliases < 0) {
      const message = `expected aliases to stand for at most ${MAX_BY_ALIASES} values in all`
      throw new Unusable({ ...this.#alias, message })
    }
    const { tag, anchor } = (node ?? {}) as Partial<Node> & { anchor?: string }
    // A check of the plain value would not see a tag.
    if (tag !== undefined) this.#fail({ path: [...this.#path], message: `expected no tag, got ${shown(tag)}` })
    if (anchor === undefined || this.#alias) return this.#plainOf(node)
    this.#anchors.set(anchor, node as Node)
    this.#open.add(node as Node)
    const value = this.#plainOf(node)
    this.#open.delete(node as Node)
    return value
  }

  #plainOf(node: unknown): unknown {
    // -0 is 0.
    if (isScalar(node)) return node.value === 0 ? 0 : node.value
    if (isMap(node)) return this.#fields(node)
    if (isSeq(node)) return node.items.map((item, i) => this.#within(i, item))
    return null
  }

  #valueOfAlias(alias: Alias): unknown {
    if (this.#alias) return this.value(this.targets.get(alias))
    const { source, range } = alias
    const at = { path: [...this.#path], ...(range && { offset: range[0] }) }
    const target = this.#anchors.get(source)
    if (!target) throw new Unusable({ ...at, message: `expected an anchor &${source} before the alias` })
    if (this.#open.has(target)) {
      throw new Unusable({ ...at, message: `expected no alias *${source} within what it stands for` })
    }
    this.targets.set(alias, target)
    this.#alias = at
    const value = this.value(target)
    this.#alias = undefined
    return value
  }

  #fail(problem: Problem): void {
    if (this.problems.length < MAX_PROBLEMS) this.problems.push(problem)
  }

  #within(part: string | number, node: unknown): unknown {
    this.#path.push(part)
    const value = this.value(node)
    this.#path.pop()
    return value
  }

  #fields(map: YAMLMap): Record<string, unknown> {
    // Without a prototype, so that `__proto__` is a field like any other, to be refused as one.
    const fields: Record<string, unknown> = Object.create(null)
    for (const { key, value } of map.items) {
      // Keys are texts, which may have anchors.
      if (isScalar(key) && key.anchor !== undefined && !this.#alias) this.#anchors.set(key.anchor, key)
      const field = isScalar(key) ? String(key.value) : ''
      if (field in fields) {
        const offset = (key as Node | null)?.range?.[0]
        const message = 'expected each field once, got it twice'
        this.#fail({ path: [...this.#path, field], message, ...(offset !== undefined && { offset }) })
      } else fields[field] = this.#within(field, value)
    }
    return fields
  }
}

/** The start of a value, or of its field. For a missing value, the start of its parent. */
function offsetOf(contents: unknown, targets: ReadonlyMap<Alias, Node>, path: Path, isField = false): number {
  let node: unknown = contents
  let offset = startOf(node) ?? 0
  for (const [i, part] of path.entries()) {
    if (isAlias(node)) node = targets.get(node)
    let next: unknown
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === part)
      if (!pair) break
      next = pair.value
      if ((isField && i === path.length - 1) || startOf(next) === undefined) {
        offset = startOf((pair as Pair<unknown>).key) ?? offset
        node = next
        continue
      }
    } else if (isSeq(node)) next = node.items[part as number]
    else break
    offset = startOf(next) ?? offset
    node = next
  }
  return offset
}

function startOf(node: unknown): number | undefined {
  return (node as Node | null | undefined)?.range?.[0]
}
