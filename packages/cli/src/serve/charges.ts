import { type ChargeOutcome, type Limiter, SluiceError } from '@sluice/core'
import { ownFieldsOf } from '@sluice/core/internal'
import { BadInput } from './bad-input.js'

/** The limiter of a decider, for changes of its charges. */
export type RequestLimiter = Pick<Limiter<never>, 'settle' | 'refund' | 'release' | 'renew'>

/** A change of a charge by the id of its decision, from the body of a request. */
type Change = (limiter: RequestLimiter, id: string, fields: Readonly<Record<string, unknown>>) => Promise<ChargeOutcome>

/** The changes, by the last part of their path. */
export const CHANGES: Readonly<Record<string, { readonly fields: readonly string[]; readonly change: Change }>> = {
  settle: {
    fields: ['id', 'units'],
    change: (limiter, id, { units }) => limiter.settle(id, units as Record<string, number>),
  },
  refund: { fields: ['id'], change: (limiter, id) => limiter.refund(id) },
  release: { fields: ['id'], change: (limiter, id) => limiter.release(id) },
  renew: { fields: ['id'], change: (limiter, id) => limiter.renew(id) },
}

const MAX_ID = 2000

/**
 * Changes a charge as a body says, and returns the outcome.
 *
 * @throws BadInput; 503 while the store is away, after which the same request is safe to repeat
 */
export async function changeCharge(name: string, body: unknown, limiter: RequestLimiter): Promise<ChargeOutcome> {
  const { fields, change } = CHANGES[name] as (typeof CHANGES)[string]
  if (typeof body !== 'object' || body === null || Array.isArray(body)) throw new BadInput(400, 'expected an object')
  const given = ownFieldsOf(body as Readonly<Record<string, unknown>>)
  const unknown = Object.keys(given).find((field) => !fields.includes(field))
  if (unknown !== undefined) {
    throw new BadInput(400, `${JSON.stringify(unknown.slice(0, 40))}: unknown field (expected ${fields.join(', ')})`)
  }
  const { id } = given
  if (typeof id !== 'string' || id.length > MAX_ID) throw new BadInput(400, 'id: expected the id of a decision')
  try {
    return await change(limiter, id, given)
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error
    if (error.code === 'STORE_UNAVAILABLE') throw new BadInput(503, 'the store is away: send this request again later')
    throw new BadInput(400, error.message)
  }
}
