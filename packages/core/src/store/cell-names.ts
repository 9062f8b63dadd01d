import { CELL_KINDS, type KernelName, soleAlgorithmOf } from './cell-kinds.js'
import type { Cell, ResolvedLimit } from './store.js'

/** A cell by the name that its key has, and whose it is. */
export interface NamedCell {
  /** Of policies that are data, and of tiers: which one's limit it is. Empty where the limiter has neither. */
  readonly of: string
  readonly cell: Cell
}

const FORMS = new Map(
  Object.entries(CELL_KINDS).flatMap(([kernel, { ids }]) =>
    Object.entries(ids).map(([word, form]) => [word, { kernel: kernel as KernelName, form }] as const),
  ),
)

/** Whose limit, the word, its numbers, whether it is a queue, for how long units are leased, and whether processes count it. */
const ID = new RegExp(
  `^(?:(.+[./]))??(${[...FORMS.keys()].join('|')})((?:\\.\\d+)+)(\\.queue)?(?:\\.leased\\.(\\d+))?(\\.relaxed)?(?:\\.\\d+)?$`,
)

/**
 * The cells that a key is of, by its name: the `id` of a cell, or the `joint` of several. Undefined where that does not say it, as
 * that of many limits that share a key is a hash.
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
  const [, of = '', word = '', text = '', queue, lease, relaxed] = ID.exec(id) ?? []
  const named = FORMS.get(word)
  if (!named) return undefined
  const { kernel, form } = named
  const all = text.slice(1).split('.').map(Number)
  // The last of an odd number distinguishes equal limits on different keys.
  const numbers = kernel === 'log' ? all.slice(0, all.length - (all.length % 2)) : all.slice(0, form.numbers)
  if (numbers.length < form.numbers) return undefined
  const { countInFull, hasPermits, lease: rules } = CELL_KINDS[kernel]
  const exact = form.params(numbers)
  const plain = relaxed === undefined ? exact : (countInFull?.(exact) ?? exact)
  // Where units are leased, the parameters are tighter.
  const tightened = lease === undefined ? undefined : rules.tighten('kept', plain, Number(lease))
  const { params = plain, capacity: max = Number.POSITIVE_INFINITY } = tightened ?? {}
  const algorithm = soleAlgorithmOf(kernel) ?? kernel
  const unit = hasPermits ? 'concurrent-requests' : 'requests'
  const limits = form.limits(numbers).map(
    ([limit, windowMs, capacity]): ResolvedLimit => ({
      name: '',
      algorithm,
      limit,
      windowMs,
      capacity: Math.min(capacity, max),
      unit,
      queue: queue !== undefined,
    }),
  )
  return { of: of.slice(0, -1), cell: { kernel, id, identity: 0, params, limits } }
}
