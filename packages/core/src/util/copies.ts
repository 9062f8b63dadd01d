import { SluiceError } from './errors.js'
import { HERE } from './here.js'

/** The property by which an object names the file of its copy. A bundler may put a second copy into a process. */
export const COPY: unique symbol = Symbol.for('@sluice/core: copy')

/** The value of that property. */
export const THIS_COPY = HERE

/** Whether a copy has limiters or stores, and whether the application listens to its events or reads its metrics. */
interface Copy {
  isUsed: boolean
  isObserved: boolean
}

const ALL = Symbol.for('@sluice/core: copies')
const shared = globalThis as { [ALL]?: Map<string, Copy> }
shared[ALL] ??= new Map()
const copies = shared[ALL]
// One that is loaded again from its file, as by a test or a development server, takes the place of the earlier one.
const own: Copy = { isUsed: false, isObserved: false }
copies.set(HERE, own)

/**
 * Notes that this copy makes a limiter.
 *
 * @throws SluiceError `TWO_COPIES` where the application observes another copy, which would not notice it
 */
export function noteUse(where: string): void {
  if (own.isUsed) return
  refuseOther((other) => other.isObserved, where, 'its events and metrics are read from another copy')
  own.isUsed = true
}

/**
 * Notes that the application observes this copy.
 *
 * @throws SluiceError `TWO_COPIES` where another copy has limiters, which this one does not notice
 */
export function noteObserver(where: string): void {
  if (own.isObserved) return
  refuseOther((other) => other.isUsed, where, 'limiters of another copy would be missing')
  own.isObserved = true
}

/** @throws SluiceError `TWO_COPIES` for an object that another copy has made */
export function refuseOfOther(where: string, object: unknown): void {
  const file = (object as { readonly [COPY]?: string } | null | undefined)?.[COPY]
  if (file !== undefined && file !== HERE) refuse(where, 'it was made by another copy', file)
}

function refuseOther(isWrong: (other: Copy) => boolean, where: string, why: string): void {
  for (const [file, other] of copies) if (other !== own && isWrong(other)) refuse(where, why, file)
}

function refuse(where: string, why: string, other: string): never {
  throw new SluiceError(
    'TWO_COPIES',
    `${where}: ${why} of @sluice/core. One is in ${HERE}, the other in ${other}. Install one version of all @sluice/ packages ` +
      '(npm ls @sluice/core), and bundle all of them or none',
  )
}
