import * as core from '@sluice/core'

/** A cost of so many units of each kind that limits count, bytes aside. */
export function ofEachUnit(limits: readonly Pick<core.Limit, 'unit'>[], cost: number): number | core.Units {
  const units = [...new Set(limits.map(({ unit }) => unit))].filter((unit) => !unit.endsWith('-bytes'))
  return units.some((unit) => unit !== 'requests') ? Object.fromEntries(units.map((unit) => [unit, cost])) : cost
}

/**
 * A limiter whose costs in numbers are of each unit that its limits count, permits too: a plain cost takes one permit. So one
 * property holds for all algorithms.
 */
export const createLimiter: typeof core.createLimiter = (options) => {
  const limiter = core.createLimiter(options)
  const { limits } = limiter
  if (limits.every(({ unit }) => unit === 'requests' || unit.endsWith('-bytes'))) return limiter
  const named = ({ cost = 1, ...rest }: core.CostOptions & core.AcquireOptions = {}) => ({
    ...rest,
    cost: typeof cost === 'number' ? ofEachUnit(limits, cost) : cost,
  })
  return new Proxy(limiter, {
    get(target, name: keyof typeof limiter) {
      if (name === 'consume' || name === 'peek' || name === 'acquire') {
        return (subject: never, given?: core.CostOptions & core.AcquireOptions) => target[name](subject, named(given))
      }
      const member: unknown = target[name]
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
