import type { KernelName } from '../store/algorithms.js'
import { invalidPolicy } from '../util/errors.js'
import type { CellKind } from './kind.js'

/** The kinds in use here, by the name that cells have: cells are data, which stores may send elsewhere and get back. */
const known = new Map<KernelName, CellKind>()

/** Makes a kind known, and returns its name. Limits bring the kinds of their cells; `bringAll` is for cells of other processes. */
export function bring(kind: CellKind): KernelName {
  if (!known.has(kind.kernel)) known.set(kind.kernel, kind)
  return kind.kernel
}

/** The kind of a cell; undefined if nothing here has brought it. */
export function knownKind({ kernel }: { readonly kernel: KernelName }): CellKind | undefined {
  return known.get(kernel)
}

/**
 * The kind of a cell that a limit or a store of this process has brought.
 *
 * @throws SluiceError `INVALID_POLICY`
 */
export function kindOfCell(cell: { readonly kernel: KernelName }): CellKind {
  return knownKind(cell) ?? invalidPolicy('cell', 'kernel', `one of ${[...known.keys()].join(', ')}`, cell.kernel)
}
