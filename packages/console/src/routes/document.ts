import { CHANGES } from '@sluice/core/store'
import type { PeekablePolicies } from '../identity/policies.js'
import type { CheckedOptions } from '../options.js'
import type { ChangeBy } from '../overrides.js'
import { Problem } from '../problem.js'
import { POLICY } from './route.js'

export const LIMITER = {
  ...POLICY,
  description: 'The limiter that decides by the document; needed where there are several.',
} as const

/**
 * The document by which a limiter decides, or the only one.
 *
 * @param otherwise what to do without one
 * @throws Problem
 */
export function documentOf(
  { documents }: CheckedOptions<never>,
  limiter: string | undefined,
  otherwise: string,
): PeekablePolicies {
  const fitting = documents.filter(({ name }) => limiter === undefined || name === limiter)
  const [first, ...others] = fitting
  if (!first) throw new Problem(404, `no such document of policies: ${otherwise}`)
  if (others.length === 0) return first.policies
  throw new Problem(400, 'limiter: expected the limiter that decides by the document: there are several')
}

/** @throws Problem */
export function byOperator({ store }: CheckedOptions<never>, by: string): ChangeBy {
  const changes = store[CHANGES]
  if (changes) return { by, changes }
  throw new Problem(501, 'this store keeps no log of changes, which this change needs')
}

/** The longest time for the connection of a document, in ms. */
const WITHIN_MS = 10_000

/**
 * The result of a call on the connection of a document. Clients of Redis keep commands for a server that is away, also forever.
 *
 * @throws Problem where it takes too long, or may not do it
 */
export async function inTime<Result>(call: Promise<Result>, withinMs = WITHIN_MS): Promise<Result> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    const message = `the connection of the document has not answered within ${withinMs / 1000} s: it may be away. A change may still be made`
    timer = setTimeout(() => reject(new Problem(503, message)), withinMs)
  })
  try {
    return await Promise.race([call, late])
  } catch (error) {
    throw notPermitted(error) ?? error
  } finally {
    clearTimeout(timer)
  }
}

const NOT_PERMITTED = /NOPERM|ACL failure|The user executing the script can/

/** Undefined for an error of another kind. */
function notPermitted(error: unknown): Problem | undefined {
  if (!(error instanceof Error) || !NOT_PERMITTED.test(error.message)) return undefined
  const why = 'its user in Redis may not run a command or touch a key that this needs'
  return new Problem(
    503,
    `Redis refuses the connection of the document: ${why}. It says: ${error.message.slice(0, 200)}`,
  )
}
