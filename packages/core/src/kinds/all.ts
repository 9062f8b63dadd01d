// Every kind of cell, for what reads cells that other processes made, or their names in keys. Nothing else imports these.
import type { KernelName } from '../store/algorithms.js'
import { BUCKET } from './bucket.js'
import { CONCURRENCY } from './concurrency.js'
import { COUNTER } from './counter.js'
import type { CellKind } from './kind.js'
import { bring } from './known.js'
import { LOG } from './log.js'
import { SEGMENTS } from './segments.js'

export const CELL_KINDS: Readonly<Record<KernelName, CellKind>> = {
  bucket: BUCKET,
  counter: COUNTER,
  segments: SEGMENTS,
  log: LOG,
  concurrency: CONCURRENCY,
}

export function bringAll(): void {
  for (const kind of Object.values(CELL_KINDS)) bring(kind)
}

const byAlgorithm: ReadonlyMap<string, CellKind> = new Map(
  Object.values(CELL_KINDS).flatMap((kind) => kind.algorithms.map((algorithm) => [algorithm, kind])),
)

/** The kind of cell that counts an algorithm; undefined for an unknown name. */
export function kindOf(algorithm: string): CellKind | undefined {
  return byAlgorithm.get(algorithm)
}

/** Whether limits of an algorithm hand out permits. */
export function hasPermits(algorithm: unknown): boolean {
  return byAlgorithm.get(algorithm as string)?.hasPermits === true
}
