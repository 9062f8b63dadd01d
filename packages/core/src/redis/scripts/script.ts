import { createHash } from 'node:crypto'
import type { Cell } from '../../store/store.js'
import {
  decideBucketScript,
  decideConcurrencyScript,
  decideCounterScript,
  decideLogScript,
  decideLogsScript,
  decideScript,
  decideSegmentsScript,
  KINDS,
  type LuaScript,
} from './scripts.generated.js'

/** Which of the kinds of cells that decide.lua knows. */
export type Kind = (typeof KINDS)[number]

export function kindOf({ kernel, params }: Cell): Kind {
  return kernel === 'window' ? (params[2] === 0 ? 'counter' : 'segments') : kernel
}

/** The number by which decide.lua knows it. */
export function kindNumber(cell: Cell): number {
  return KINDS.indexOf(kindOf(cell)) + 1
}

/** Where a plan has several cells. */
const SEVERAL = 1 << 6
/** Where a log is shared by several limits. */
const SHARED = 1 << 7
/** Where something is given back or renewed. */
export const SETTLES = 1 << 8

const bitOf = (kind: Kind) => 1 << (KINDS.indexOf(kind) + 1)

const BITS: Readonly<Record<string, number>> = {
  ...Object.fromEntries(KINDS.map((kind) => [kind, bitOf(kind)])),
  several: SEVERAL,
}

/** What a plan needs of decide.lua, as a sum of bits; of a batch they are put together. */
export function partsFor(cells: readonly Cell[]): number {
  let parts = cells.length > 1 ? SEVERAL : 0
  for (const cell of cells) {
    parts |= bitOf(kindOf(cell))
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
