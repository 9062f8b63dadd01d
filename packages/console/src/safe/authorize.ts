import { propertyOf } from '@sluice/core/internal'
import type { Authorize, Operator } from '../options.js'
import { Problem } from '../problem.js'

/** The longest time for `authorize`, in ms. */
const AUTHORIZE_WITHIN_MS = 5000
const LONGEST_NAME = 100

const AGAIN_MS = 60_000
/** When each console warned last, by its function. */
const warnedAt = new WeakMap<object, number>()

/** Once a minute: each request would warn. */
function warnOf(authorize: object, onFailure: (why: string) => void, error: unknown): void {
  const now = performance.now()
  if (now - (warnedAt.get(authorize) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return
  warnedAt.set(authorize, now)
  onFailure(`authorize failed: ${error instanceof Error ? error.message : 'it threw no error'}`)
}

/**
 * The operator that a request comes from.
 *
 * @param onFailure is told why `authorize` failed, which its caller is not
 * @throws Problem where `authorize` throws, rejects, takes too long, or returns anything but an operator
 */
export async function operatorOf<Request>(
  authorize: Authorize<Request>,
  request: Request,
  onFailure: (why: string) => void,
): Promise<Operator> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it took ${AUTHORIZE_WITHIN_MS / 1000} s`)), AUTHORIZE_WITHIN_MS)
  })
  let found: unknown
  try {
    found = await Promise.race([authorize(request), late])
  } catch (error) {
    warnOf(authorize, onFailure, error)
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
