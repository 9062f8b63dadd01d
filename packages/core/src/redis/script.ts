import { createHash } from 'node:crypto'
import type { Cell } from '../store.js'
import { decideScript, type LuaScript } from './scripts.generated.js'

/** The parts of decide.lua, in the order of the numbers by which it knows the kernels, from 1. */
const PARTS = ['bucket', 'log', 'segments', 'counter', 'concurrency'] as const

export type Part = (typeof PARTS)[number]

/** What of decide.lua a cell needs. */
export function partOf({ kernel, params }: Cell): Part {
  return kernel === 'window' ? (params[2] === 0 ? 'counter' : 'segments') : kernel
}

/** The number by which decide.lua knows it. */
export function partNumber(cell: Cell): number {
  return PARTS.indexOf(partOf(cell)) + 1
}

/** The part for batches where a plan has several cells. */
export const SEVERAL = 1 << 6

const BITS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(PARTS.map((part, i) => [part, 1 << (i + 1)])),
  several: SEVERAL,
}

const variants = new Map<number, LuaScript>()

/**
 * decide.lua with only the parts that a batch needs, given as the sum of 2 to the power of their numbers, and
 * `SEVERAL`. Redis makes every function of a script anew on every run: one decision then costs a fraction.
 */
export function decideScriptFor(parts: number): LuaScript {
  let script = variants.get(parts)
  if (!script) {
    const source = withParts(decideScript.source, parts)
    script = { name: decideScript.name, source, sha1: createHash('sha1').update(source).digest('hex') }
    variants.set(parts, script)
  }
  return script
}

function withParts(source: string, parts: number): string {
  /** Of the parts around the line at hand, whether each is needed. */
  const around: boolean[] = []
  const lines = source.split('\n').filter((line) => {
    const [, part] = /^--@when (\w+)$/.exec(line) ?? []
    if (part !== undefined) around.push((parts & (BITS[part] as number)) !== 0)
    else if (line === '--@end') around.pop()
    else return !around.includes(false)
    return false
  })
  return lines.join('\n')
}
