import { CELL_KINDS } from '@sluice/core/internal'
import type { Cell, KernelName, ResolvedLimit } from '@sluice/core/store'

/** A cell by the name that its key has, and whose it is. */
export interface NamedCell {
  /** Of policies that are data, and of tiers: which one's limit it is. Empty where the limiter has neither. */
  readonly of: string
  readonly cell: Cell
}

/** What the numbers in a cell's id are the parameters of. */
interface Kind {
  readonly kernel: KernelName
  readonly algorithm: string
  /** How many numbers there are; of a log a limit and a window for each of its limits. */
  readonly numbers: number
  readonly params: (numbers: readonly number[]) => readonly number[]
}

const KINDS: Readonly<Record<string, Kind>> = {
  log: { kernel: 'log', algorithm: 'slidingLog', numbers: 2, params: logParams },
  fixed: { kernel: 'counter', algorithm: 'fixedWindow', numbers: 2, params: ([l, w]) => [l, w, 0, 1] as number[] },
  opened: { kernel: 'counter', algorithm: 'fixedWindow', numbers: 2, params: ([l, w]) => [l, w, 0, 0] as number[] },
  sliding: { kernel: 'segments', algorithm: 'slidingWindow', numbers: 4, params: (numbers) => numbers },
  bucket: { kernel: 'bucket', algorithm: 'bucket', numbers: 4, params: (numbers) => numbers },
  concurrency: { kernel: 'concurrency', algorithm: 'concurrency', numbers: 2, params: (numbers) => numbers },
}

/** Whose limit, its kind, its numbers, whether it is a queue, for how long units are leased, and whether processes count it. */
const ID =
  /^(?:(.+[./]))??(log|fixed|opened|sliding|bucket|concurrency)((?:\.\d+)+)(\.queue)?(?:\.leased\.(\d+))?(\.relaxed)?(?:\.\d+)?$/

/**
 * The cells that a key is of, by its name; undefined where that does not say it, as that of many limits that share a key is a
 * hash.
 */
export function cellsNamed(name: string): readonly NamedCell[] | undefined {
  const ids = name.split('+')
  const cells = ids.map(cellNamed)
  if (cells.includes(undefined)) return undefined
  const known = cells as NamedCell[]
  if (known.length === 1) return known.map((each) => ({ ...each, cell: { ...each.cell, id: name } }))
  return known.map(({ of, cell }) => ({ of, cell: { ...cell, id: `${name}/${cell.id}`, joint: name } }))
}

function cellNamed(id: string): NamedCell | undefined {
  const [, of = '', name = '', text = '', queue, lease, relaxed] = ID.exec(id) ?? []
  const kind = KINDS[name]
  if (!kind) return undefined
  const all = text.slice(1).split('.').map(Number)
  // The last of an odd number distinguishes equal limits on different keys.
  const numbers = name === 'log' ? all.slice(0, all.length - (all.length % 2)) : all.slice(0, kind.numbers)
  if (numbers.length < kind.numbers) return undefined
  const leaseMs = lease === undefined ? 0 : Number(lease)
  const { kernel, algorithm } = kind
  const exact = kind.params(numbers)
  const plain = relaxed === undefined ? exact : (CELL_KINDS[kernel].countInFull?.(exact) ?? exact)
  const limits = limitsOf(algorithm, numbers, queue !== undefined)
  const cell = { kernel, id, identity: 0, ...counted(kernel, plain, limits, leaseMs) }
  return { of: of.slice(0, -1), cell }
}

/** Of a log all limits, each with its window; of other kinds one. */
function limitsOf(algorithm: string, numbers: readonly number[], queue: boolean): readonly ResolvedLimit[] {
  const unit = algorithm === 'concurrency' ? 'concurrent-requests' : 'requests'
  const limits: ResolvedLimit[] = []
  const count = algorithm === 'slidingLog' ? numbers.length : 2
  for (let i = 0; i < count; i += 2) {
    const [limit = 0, windowMs = 0] = numbers.slice(i)
    const capacity = algorithm === 'bucket' ? (numbers[2] as number) : limit
    limits.push({ name: '', algorithm, limit, windowMs, capacity, unit, queue })
  }
  return limits
}

/** The parameters by which it is counted where units are leased, which are tighter. */
function counted(
  kernel: KernelName,
  params: readonly number[],
  limits: readonly ResolvedLimit[],
  leaseMs: number,
): Pick<Cell, 'params' | 'limits'> {
  if (leaseMs === 0) return { params, limits }
  if (kernel === 'log') return { params: params.map((param, i) => (i % 2 === 0 ? param : param + leaseMs)), limits }
  const tightened = CELL_KINDS[kernel].lease.tighten('inspect', params, leaseMs)
  if (!tightened) return { params, limits }
  return { params: tightened.params, limits: limits.map((each) => ({ ...each, capacity: tightened.capacity })) }
}

function logParams(numbers: readonly number[]): number[] {
  const limits = numbers.filter((_, i) => i % 2 === 0)
  const windows = numbers.filter((_, i) => i % 2 === 1)
  return [Math.max(...limits), Math.max(...windows), ...numbers]
}
