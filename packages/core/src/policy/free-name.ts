/** The longest name of a limit. */
const MAX_LENGTH = 64

/** The names that are given. Names differ by more than case, as clients may fold those of structured fields. */
export function takenNames(given: readonly (string | undefined)[]): Set<string> {
  return new Set(given.flatMap((name) => (name === undefined ? [] : [name.toLowerCase()])))
}

/** Names in lower case. */
export interface TakenNames {
  has(name: string): boolean
  add(name: string): unknown
}

/** A name that is free, and taken then: `chat-1m`, or `chat-1m-2` where another limit has that. `from`: the first number to try. */
export function freeLimitName(base: string, taken: TakenNames, from = 2): string {
  let free = base
  for (let n = from; taken.has(free.toLowerCase()); n++) {
    const end = `-${n}`
    free = base.slice(0, MAX_LENGTH - end.length) + end
  }
  taken.add(free.toLowerCase())
  return free
}
