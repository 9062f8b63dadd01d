import { byEffort } from '../../support/effort.js'
import type { When } from './compared.js'

export const TIMES: readonly When[] = ['after', 'before']

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
  .slice(0, byEffort({ usual: 1, full: Number.POSITIVE_INFINITY }))
  .flatMap(([kind, value]) => TIMES.map((when): [string, When, unknown] => [kind, when, value]))
