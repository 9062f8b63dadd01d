/** Further than any window of the tests reaches. */
const NEVER = 2 ** 45

/**
 * The least number of ms, from 0, after which `holds`; it must go on holding from there. Found by
 * trying, never by a formula: doubling steps, then halving the last one.
 */
export function firstMs(holds: (afterMs: number) => boolean): number {
  if (holds(0)) return 0
  let no = 0
  let yes = 1
  while (!holds(yes)) {
    no = yes
    yes *= 2
    if (yes > NEVER) return Number.POSITIVE_INFINITY
  }
  while (yes - no > 1) {
    const middle = Math.floor((no + yes) / 2)
    if (holds(middle)) yes = middle
    else no = middle
  }
  if (holds(yes - 1) || !holds(yes)) throw new Error(`the search does not stand at ${yes} ms`)
  return yes
}
