import { type Cell, PLAIN_CELL, type ResolvedLimit, UNNAMED } from '../store/store.js'
import { PERMITS } from '../store/units.js'
import { CELL_KINDS } from './all.js'

/** A cell parsed from the name in its key, and its owner. */
export interface NamedCell {
  /** The policy document or tier that the limit belongs to. Empty if the limiter has neither. */
  readonly of: string
  readonly cell: Cell
}

const FORMS = new Map(
  Object.values(CELL_KINDS).flatMap((kind) =>
    Object.entries(kind.ids).map(([word, form]) => [word, { kind, form }] as const),
  ),
)

/** Owner, word, numbers, whether the limit queues, its own unit, lease ttl in ms, and whether processes count it by themselves. */
const ID = new RegExp(
  `^(?:(.+[./]))??(${[...FORMS.keys()].join('|')})((?:\\.\\d+)+)(\\.queue)?(?:_([A-Za-z0-9-]+))?(?:\\.leased\\.(\\d+))?(\\.relaxed)?(?:\\.\\d+)?$`,
)

/**
 * The cells that a name in a key stands for: the `id` of a cell, or the `joint` of several. Undefined if the name does
 * not contain them, such as the hash that replaces the names of many limits.
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
  const [, of = '', word = '', text = '', queue, ownUnit, lease, relaxed] = ID.exec(id) ?? []
  const named = FORMS.get(word)
  if (!named) return undefined
  const { kind, form } = named
  const { kernel, algorithms, countInFull, hasPermits, lease: rules, widen } = kind
  const all = text.slice(1).split('.').map(Number)
  // In an odd count, the last number distinguishes equal limits on different keys.
  const numbers = kernel === 'log' ? all.slice(0, all.length - (all.length % 2)) : all.slice(0, form.numbers)
  if (numbers.length < form.numbers) return undefined
  const exact = form.params(numbers)
  const change = relaxed === undefined ? ownUnit && widen : countInFull
  const plain = change ? change(exact) : exact
  // Leases tighten the parameters.
  const tightened = lease === undefined ? undefined : rules.tighten('kept', plain, Number(lease))
  const { params = plain, capacity: max = Number.POSITIVE_INFINITY } = tightened ?? {}
  const [sole, ...others] = algorithms
  const algorithm = sole === undefined || others.length > 0 ? kernel : sole
  const unit = ownUnit ?? (hasPermits ? PERMITS : 'requests')
  const limits = form.limits(numbers).map(
    ([limit, windowMs, capacity, calendar]): ResolvedLimit => ({
      ...UNNAMED,
      algorithm,
      limit,
      windowMs,
      capacity: Math.min(capacity, max),
      unit,
      queue: queue !== undefined,
      calendar,
    }),
  )
  return { of: of.slice(0, -1), cell: { ...PLAIN_CELL, kernel, id, params, limits } }
}
