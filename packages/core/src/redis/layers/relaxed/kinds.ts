import type { Cell } from '../../../store/store.js'
import type { LocalCount } from './local-count.js'
import { LocalCounter } from './local-counter.js'
import { LocalSegments } from './local-segments.js'

/** An empty count of a cell. Policies refuse the kinds that are not exchanged. */
export function localCountOf({ kernel, params }: Cell): LocalCount {
  switch (kernel) {
    case 'counter':
      return new LocalCounter(params)
    case 'segments':
      return new LocalSegments(params)
    default:
      throw new TypeError(`a ${kernel} is not counted by a process alone`)
  }
}

/** How many numbers a count takes in memory, about. */
export function numbersOf({ kernel, params }: Cell): number {
  const segments = kernel === 'segments' ? (params[2] as number) : 0
  return NUMBERS_OF_ANY + segments
}

/** With its identity, its entry in two tables and what is to be sent of it. */
const NUMBERS_OF_ANY = 64
