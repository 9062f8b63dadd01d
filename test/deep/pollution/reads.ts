import { expect } from 'vitest'
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

interface Answered {
  readonly status: number
  readonly text: string
}

/** Names of options, which operations reject while the prototype has them. */
const options = new Set<string>()

/**
 * Sends requests on a clean prototype, then on a polluted one, and expects the same statuses and no reads. The names of options are
 * left out as operations reject them, so that these go on.
 */
export async function expectNoReads(
  names: readonly string[],
  send: (note: (answered: Answered) => void) => Promise<void>,
): Promise<void> {
  let statuses: number[] = []
  const note = ({ status, text }: Answered) => {
    statuses.push(status)
    const [, name] = /([\w-]+): expected no property of this name on Object\.prototype/.exec(text) ?? []
    if (name !== undefined) options.add(name)
  }
  await send(note)
  const expected = statuses
  let known: number
  do {
    known = options.size
    statuses = []
    const others = names.filter((name) => !options.has(name))
    expect(await readsDuring(others, () => send(note))).toEqual([])
  } while (options.size > known)
  expect(statuses).toEqual(expected)
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
