import { byEffort } from '../../support/effort.js'
import type { When } from './compared.js'

const VALUES: Readonly<Record<string, unknown>> = {
  1: 1,
  true: true,
  text: 'x',
  function: () => 1,
  object: {},
  list: [1],
}

/** Kinds of values, before and after limiters are made: in brief the first alone. */
export const CASES = Object.entries(VALUES)
  .flatMap(([kind, value]) =>
    (['after', 'before'] as const).map((when): [string, When, unknown] => [kind, when, value]),
  )
  .slice(0, byEffort({ usual: 1, full: Number.POSITIVE_INFINITY }))
