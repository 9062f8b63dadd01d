import { Pollution } from '../../support/polluted.js'

/** The names that our packages read through `Object.prototype` meanwhile, each with the place. */
export async function readsDuring(names: readonly string[], use: () => Promise<unknown>): Promise<readonly string[]> {
  const { pollution, reads } = Pollution.ofReads()
  pollution.become(names.filter((name) => !OF_THE_LANGUAGE.includes(name)))
  try {
    await use()
  } finally {
    pollution.become([])
  }
  return ourReads(reads)
}

/** Of names and the places that read them, those of our packages. */
export function ourReads(reads: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...reads].flatMap(([name, places]) => [...places].filter(isOurs).map((place) => `${name} ${place}`)).sort()
}

/**
 * Promises ask each object for `then`, and loops ask each iterator for `return`. With the others on a prototype, no program defines
 * a property by a value.
 */
export const OF_THE_LANGUAGE = ['then', 'return', 'get', 'set']

/** Whether a line of a stack is of a package of ours. */
function isOurs(place: string): boolean {
  return place.includes('/packages/') && !place.includes('node_modules')
}
