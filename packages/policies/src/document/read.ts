import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  type Pair,
  parseDocument,
  type YAMLMap,
} from 'yaml'
import { MOST_DEPTH, MOST_VALUES, Unusable } from './plain.js'
import { type LocatedProblem, MOST_PROBLEMS, type Path, type Problem, textOfPath } from './problem.js'
import { tooMuchIn } from './too-much.js'

/** Longest document, in characters: 100,000 overrides have some 10 million. */
const MOST_TEXT = 16_777_216
/** Most values that aliases stand for, together. */
const MOST_BY_ALIASES = 50_000
/** Mistakes of the syntax that are told: each may follow from the one before. */
const MOST_SYNTAX_PROBLEMS = 5

/** What a text says, and where it says it. */
export interface ReadText {
  readonly value: unknown
  readonly problems: readonly Problem[]
  /** Line and column of a value, or of the field itself, from 1. */
  readonly locate: (problem: Problem) => { line: number; column: number }
}

/** Reads YAML 1.2, which JSON is, too. */
export function readText(text: string): ReadText {
  const lines = new LineCounter()
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }
  const failed = (message: string, offset: number): ReadText => {
    // No parser has counted the lines.
    const before = text.slice(0, offset)
    const line = before.split('\n').length
    const column = offset - before.lastIndexOf('\n')
    return { value: undefined, problems: [{ path: [], message, offset }], locate: () => ({ line, column }) }
  }
  if (text.length > MOST_TEXT) return failed(`expected at most ${MOST_TEXT} characters, got ${text.length}`, 0)
  const tooMuch = tooMuchIn(text)
  if (tooMuch) return failed(tooMuch.message, tooMuch.offset)
  const document = parseDocument(text, {
    lineCounter: lines,
    prettyErrors: false,
    stringKeys: true,
    // Looked for below: the parser compares each with each.
    uniqueKeys: false,
    version: '1.2',
    logLevel: 'error',
  })
  const targets = new Map<Alias, Node | undefined>()
  const locate = ({ path, isField, offset }: Problem) =>
    at(offset ?? offsetOf(document.contents, targets, path, isField))
  if (document.errors.length > 0) {
    const problems = document.errors.slice(0, MOST_SYNTAX_PROBLEMS).map(({ message, pos }) => ({
      path: [],
      message: message.split('\n', 1)[0] as string,
      offset: pos[0],
    }))
    return { value: undefined, problems, locate }
  }
  const problems: Problem[] = []
  try {
    findTargets(document.contents, new Map(), targets)
    return { value: new Reader(targets, problems).value(document.contents, []), problems, locate }
  } catch (error) {
    if (!(error instanceof Unusable)) throw error
    return { value: undefined, problems: [...problems, error.problem], locate }
  }
}

/** Says of problems where they are, in the order of their places. */
export function locatedBy(
  source: string,
  locate: (problem: Problem) => { line: number; column: number } | undefined,
): (problems: readonly Problem[]) => LocatedProblem[] {
  return (problems) =>
    problems
      // To find a place takes time, and there may be as many problems as there are fields.
      .slice(0, MOST_PROBLEMS)
      .map((problem) => {
        const { line, column } = locate(problem) ?? {}
        return { source, line, column, path: textOfPath(problem.path), message: problem.message }
      })
      .sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0))
}

/** Makes plain values of nodes. */
class Reader {
  readonly #targets: ReadonlyMap<Alias, Node | undefined>
  readonly #problems: Problem[]
  #left = MOST_VALUES
  #leftOfAliases = MOST_BY_ALIASES
  /** How many aliases the value at hand is within. */
  #aliases = 0

  constructor(targets: ReadonlyMap<Alias, Node | undefined>, problems: Problem[]) {
    this.#targets = targets
    this.#problems = problems
  }

  value(node: unknown, path: Path): unknown {
    if (path.length > MOST_DEPTH) throw new Unusable({ path, message: `expected at most ${MOST_DEPTH} levels` })
    if (--this.#left < 0) throw new Unusable({ path: [], message: `expected at most ${MOST_VALUES} values` })
    if (this.#aliases > 0 && --this.#leftOfAliases < 0) {
      throw new Unusable({ path, message: `expected aliases to stand for at most ${MOST_BY_ALIASES} values in all` })
    }
    if (isScalar(node)) return node.value
    if (isMap(node)) return this.#fields(node, path)
    if (isSeq(node)) return node.items.map((item, i) => this.value(item, [...path, i]))
    if (isAlias(node)) {
      const target = this.#targets.get(node)
      if (!target) throw new Unusable({ path, message: `expected an anchor &${node.source} before the alias` })
      this.#aliases++
      const value = this.value(target, path)
      this.#aliases--
      return value
    }
    return null
  }

  #fields(map: YAMLMap, path: Path): Record<string, unknown> {
    // Without a prototype, so that `__proto__` is a field like any other, to be refused as one.
    const fields: Record<string, unknown> = Object.create(null)
    for (const { key, value } of map.items) {
      const field = isScalar(key) ? String(key.value) : ''
      if (field in fields) {
        const offset = (key as Node | null)?.range?.[0]
        const message = 'expected each field once, got it twice'
        this.#problems.push({ path: [...path, field], message, ...(offset !== undefined && { offset }) })
        continue
      }
      fields[field] = this.value(value, [...path, field])
    }
    return fields
  }
}

/**
 * Finds what each alias stands for: the last node before it that has its anchor. In one walk, as the parser's own way is a walk
 * for each alias, and there may be a million.
 */
function findTargets(node: unknown, anchors: Map<string, Node>, targets: Map<Alias, Node | undefined>): void {
  if (isAlias(node)) {
    targets.set(node, anchors.get(node.source))
    return
  }
  const { anchor } = (node ?? {}) as { anchor?: string }
  if (anchor !== undefined) anchors.set(anchor, node as Node)
  if (isMap(node)) {
    for (const { key, value } of node.items) {
      findTargets(key, anchors, targets)
      findTargets(value, anchors, targets)
    }
  } else if (isSeq(node)) for (const item of node.items) findTargets(item, anchors, targets)
}

/** Where a value begins, or its field; of what is not there, what it would be in. */
function offsetOf(
  contents: unknown,
  targets: ReadonlyMap<Alias, Node | undefined>,
  path: Path,
  isField = false,
): number {
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
