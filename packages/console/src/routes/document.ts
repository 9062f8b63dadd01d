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
  const { changes } = store
  if (changes) return { by, changes }
  throw new Problem(501, 'this store keeps no log of changes, which this change needs')
}
