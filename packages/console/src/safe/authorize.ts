import { propertyOf } from '@sluice/core/internal'
import type { Authorize, Operator } from '../options.js'
import { Problem } from '../problem.js'
import { warnOf } from '../warn.js'

/** The longest time for `authorize`, in ms. */
const AUTHORIZE_WITHIN_MS = 5000
const LONGEST_NAME = 100

/**
 * The operator that a request comes from. A warning says why `authorize` failed, which its caller is not told.
 *
 * @throws Problem where `authorize` throws, rejects, takes too long, or returns anything but an operator
 */
export async function operatorOf<Request>(authorize: Authorize<Request>, request: Request): Promise<Operator> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took ${AUTHORIZE_WITHIN_MS / 1000} s`)), AUTHORIZE_WITHIN_MS)
  })
  let found: unknown
  try {
    found = await Promise.race([authorize(request), late])
  } catch (error) {
    warnOf(authorize, 'authorize', error instanceof Error ? error.message : 'it threw no error')
  } finally {
    clearTimeout(timer)
  }
  const operator = operatorIn(found)
  if (operator) return operator
  throw new Problem(403, 'this request may not use the console')
}

/** A copy, so that nothing changes it later. Undefined for anything but an operator, also one that throws when it is read. */
function operatorIn(found: unknown): Operator | undefined {
  try {
    if (typeof found !== 'object' || found === null) return undefined
    const [name, may] = [propertyOf(found as Operator, 'name'), propertyOf(found as Operator, 'may')]
    const isNamed = typeof name === 'string' && name !== '' && name.length <= LONGEST_NAME
    return isNamed && (may === 'read' || may === 'act') ? { name, may } : undefined
  } catch {
    return undefined
  }
}
