/** The longest name of a limit. */
const MAX_LENGTH = 64

/** The names that are given. Names differ by more than case, as clients may fold those of structured fields. */
export function takenNames(given: readonly (string | undefined)[]): Set<string> {
  return new Set(given.flatMap((name) => (name === undefined ? [] : [name.toLowerCase()])))
}

/** A name that is free, and taken then: `chat-1m`, or `chat-1m-2` where another limit has that. */
export function freeName(base: string, taken: Set<string>): string {
  let free = base
  for (let n = 2; taken.has(free.toLowerCase()); n++) {
    const end = `-${n}`
    free = base.slice(0, MAX_LENGTH - end.length) + end
  }
  taken.add(free.toLowerCase())
  return free
}
