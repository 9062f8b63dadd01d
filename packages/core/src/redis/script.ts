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

const variants = new Map<number, LuaScript>()

/**
 * decide.lua with only the parts that a batch needs, given as the sum of 2 to the power of their numbers.
 * Redis makes every function of a script anew on every run: one decision then costs a fraction.
 */
export function decideScriptFor(parts: number): LuaScript {
  let script = variants.get(parts)
  if (!script) {
    const source = decideScript.source.replace(/^--@when (\w+)\n([\s\S]*?)^--@end\n/gm, (_, part, body) =>
      parts & (1 << (PARTS.indexOf(part) + 1)) ? body : '',
    )
    script = { name: decideScript.name, source, sha1: createHash('sha1').update(source).digest('hex') }
    variants.set(parts, script)
  }
  return script
}
