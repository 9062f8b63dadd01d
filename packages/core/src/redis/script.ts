import { createHash } from 'node:crypto'
import type { Cell } from '../store.js'
import {
  decideBucketScript,
  decideConcurrencyScript,
  decideCounterScript,
  decideLogScript,
  decideLogsScript,
  decideScript,
  decideSegmentsScript,
  type LuaScript,
} from './scripts.generated.js'

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

/** Where a plan has several cells. */
const SEVERAL = 1 << 6
/** Where a log is shared by several limits. */
const SHARED = 1 << 7
/** Where something is given back or renewed. */
export const SETTLES = 1 << 8

const bitOf = (part: Part) => 1 << (PARTS.indexOf(part) + 1)

const BITS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(PARTS.map((part) => [part, bitOf(part)])),
  several: SEVERAL,
}

/** What a plan needs of decide.lua, as a sum of bits; of a batch they are put together. */
export function partsFor(cells: readonly Cell[]): number {
  let parts = cells.length > 1 ? SEVERAL : 0
  for (const cell of cells) {
    parts |= bitOf(partOf(cell))
    if (cell.kernel === 'log' && cell.limits.length > 1) parts |= SHARED
  }
  return parts
}

/** By what a batch needs: the scripts that the build makes for plans of one cell each, all alike. */
const ALIKE = new Map<number, LuaScript>([
  [bitOf('bucket'), decideBucketScript],
  [bitOf('log'), decideLogScript],
  [bitOf('log') | SHARED, decideLogsScript],
  [bitOf('segments'), decideSegmentsScript],
  [bitOf('counter'), decideCounterScript],
  [bitOf('concurrency'), decideConcurrencyScript],
])

const variants = new Map<number, LuaScript>()

/**
 * The script that decides a batch, by what it needs: one that the build has made for it, or decide.lua with only these
 * parts. Redis makes every function of a script anew on every run: one decision then costs a fraction.
 */
export function decideScriptFor(parts: number): LuaScript {
  const alike = ALIKE.get(parts)
  if (alike) return alike
  const needed = parts & ~(SHARED | SETTLES)
  let script = variants.get(needed)
  if (!script) {
    const source = withParts(decideScript.source, needed)
    script = { name: decideScript.name, source, sha1: createHash('sha1').update(source).digest('hex') }
    variants.set(needed, script)
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
