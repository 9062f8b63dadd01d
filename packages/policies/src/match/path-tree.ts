import { foldedSegment, plainSegments, type Segments, spellingsOf } from './spellings.js'

/** Most segments of a pattern. */
const MOST_SEGMENTS = 32

/** What a pattern may not be; undefined for one that is well. */
export function patternFault(pattern: string): string | undefined {
  const segments = pattern.split('/').slice(1)
  if (segments.length > MOST_SEGMENTS) return `expected at most ${MOST_SEGMENTS} segments`
  const rest = segments.indexOf('**')
  if (rest >= 0 && rest !== segments.length - 1) return 'expected ** as the last segment alone'
  for (const segment of segments) {
    if (segment === '*' || segment === '**' || /^:[A-Za-z0-9_]{1,64}$/.test(segment)) continue
    if (segment.includes('*') || segment.startsWith(':')) return `expected *, ** or :name as a whole segment`
    if (segment.includes('?') || segment.includes('#')) return 'expected a path without a query'
  }
  return undefined
}

interface Node {
  readonly next: Map<string, Node>
  /** Of a segment that may be any. */
  any: Node | undefined
  /** The policies of patterns that end here. */
  readonly ends: number[]
  /** The policies of patterns that go on with anything, or nothing. */
  readonly rest: number[]
}

/** Patterns of paths as a tree of segments, so that a path is looked up in as many steps as it has segments. */
export class PathTree {
  readonly #root = emptyNode()

  add(pattern: string, policy: number): void {
    let node = this.#root
    for (const segment of pattern.split('/').filter((each) => each !== '')) {
      if (segment === '**') {
        node.rest.push(policy)
        return
      }
      node = segment === '*' || segment.startsWith(':') ? anyOf(node) : nextOf(node, foldedSegment(segment))
    }
    node.ends.push(policy)
  }

  /** The policies whose patterns match a path, in order, each once. */
  find(path: string): readonly number[] {
    const found: number[] = []
    const plain = plainSegments(path)
    if (plain) collect(this.#root, plain, 0, found)
    else for (const segments of spellingsOf(path)) collect(this.#root, segments, 0, found)
    if (found.length < 2) return found
    return [...new Set(found)].sort((a, b) => a - b)
  }
}

function collect(node: Node, segments: Segments, at: number, found: number[]): void {
  for (const policy of node.rest) found.push(policy)
  if (at === segments.length) {
    for (const policy of node.ends) found.push(policy)
    return
  }
  const next = node.next.get(segments[at] as string)
  if (next) collect(next, segments, at + 1, found)
  if (node.any) collect(node.any, segments, at + 1, found)
}

function emptyNode(): Node {
  return { next: new Map(), any: undefined, ends: [], rest: [] }
}

function nextOf(node: Node, segment: string): Node {
  let next = node.next.get(segment)
  if (!next) {
    next = emptyNode()
    node.next.set(segment, next)
  }
  return next
}

function anyOf(node: Node): Node {
  node.any ??= emptyNode()
  return node.any
}
