type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json }

const MAX_TRIES = 3000
/** Cases over HTTP that wait for what never comes take long. */
const MAX_MS = 120_000

/** The smallest value found by leaving out and lowering parts, one by one, for which `holds`. */
export async function shrink<T>(whole: T, holds: (candidate: T) => Promise<boolean>): Promise<T> {
  let best = whole
  let tries = 0
  const end = performance.now() + MAX_MS
  const goesOn = () => tries < MAX_TRIES && performance.now() < end
  for (let isSmaller = true; isSmaller && goesOn(); ) {
    isSmaller = false
    for (let tried = 0; goesOn(); tried++, tries++) {
      // Those before have failed, and seldom hold for the smaller value: they come again in the next pass.
      const candidate = nth(smallerThan(best as Json), tried)
      if (candidate === undefined) break
      if (await holds(candidate as T)) {
        best = candidate as T
        isSmaller = true
        tried--
      }
    }
  }
  return best
}

function nth(all: Iterable<Json>, n: number): Json | undefined {
  let i = 0
  for (const one of all) if (i++ === n) return one
  return undefined
}

/** Fields that may be left out. */
const OPTIONAL = new Set(
  'unavailable denyCache keep lease sharedTurns at raw behind upgrade onDeny ban count enforce allow deny anonymous times unit estimate reserve key anchor style queue byId early total tokens cents requests concurrent-requests'.split(
    ' ',
  ),
)

function* smallerThan(value: Json): Generator<Json> {
  if (Array.isArray(value)) {
    for (let size = Math.ceil(value.length / 2); size > 0; size = size === 1 ? 0 : Math.ceil(size / 2)) {
      for (let i = value.length - size; i >= 0; i -= size) yield value.toSpliced(i, size)
    }
    for (const [i, each] of value.entries()) for (const smaller of smallerThan(each)) yield value.with(i, smaller)
  } else if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value)
    for (const [name] of entries)
      if (OPTIONAL.has(name)) yield Object.fromEntries(entries.filter(([other]) => other !== name))
    for (const [name, each] of entries) for (const smaller of smallerThan(each)) yield { ...value, [name]: smaller }
  } else if (typeof value === 'number') {
    for (const less of [0, 1, Math.floor(value / 2), value - 1]) if (less >= 0 && less < value) yield less
  }
}
