import { type Alias, isAlias, isMap, isSeq, type Node } from 'yaml'
import { Unusable } from './plain.js'
import type { Path } from './problem.js'

/** Most values that aliases stand for, together. */
const MOST_BY_ALIASES = 50_000

interface Anchored {
  readonly node: Node
  /** How many values it is, with those that aliases in it stand for; undefined while the walk is in it. */
  values: number | undefined
}

/**
 * Finds what each alias stands for: the last node before it that has its anchor. In one walk, as the parser's own way is a walk for
 * each alias. It counts what aliases stand for before anything is made of them: they may explode.
 *
 * @throws Unusable
 */
export function targetsOf(contents: unknown): ReadonlyMap<Alias, Node> {
  const anchors = new Map<string, Anchored>()
  const targets = new Map<Alias, Node>()
  const path: (string | number)[] = []
  let left = MOST_BY_ALIASES

  const values = (node: unknown): number => {
    if (isAlias(node)) return valuesOfAlias(node)
    const { anchor } = (node ?? {}) as { anchor?: string }
    const anchored: Anchored | undefined = anchor === undefined ? undefined : { node: node as Node, values: undefined }
    if (anchored) anchors.set(anchor as string, anchored)
    let count = 1
    if (isMap(node)) {
      for (const { key, value } of node.items) {
        // Keys are texts, which may have anchors.
        path.push(String((key as { value?: unknown } | null)?.value ?? ''))
        values(key)
        count += values(value)
        path.pop()
      }
    } else if (isSeq(node)) {
      for (const [i, item] of node.items.entries()) {
        path.push(i)
        count += values(item)
        path.pop()
      }
    }
    if (anchored) anchored.values = count
    return count
  }

  const valuesOfAlias = (alias: Alias): number => {
    const { source, range } = alias
    const fail = (message: string) =>
      new Unusable({ path: [...path] as Path, message, ...(range && { offset: range[0] }) })
    const anchored = anchors.get(source)
    if (!anchored) throw fail(`expected an anchor &${source} before the alias`)
    if (anchored.values === undefined) throw fail(`expected no alias *${source} within what it stands for`)
    left -= anchored.values
    if (left < 0) throw fail(`expected aliases to stand for at most ${MOST_BY_ALIASES} values in all`)
    targets.set(alias, anchored.node)
    return anchored.values
  }

  values(contents)
  return targets
}
