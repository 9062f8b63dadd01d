/**
 * Makes `count` calls, so many of them at any time, over `keys` keys in turn.
 *
 * @param {{ count: number, inFlight: number, keys: number, step?: number, first?: number }} load `step`: from one key to
 *   the next; `first`: how many calls have been made before
 * @param {(key: string) => unknown} call
 */
export async function keepInFlight({ count, inFlight, keys, step = 1, first = 0 }, call) {
  let made = 0
  const one = async () => {
    while (made < count) await call(`user:${((first + made++) * step) % keys}`)
  }
  await Promise.all(Array.from({ length: inFlight }, one))
}
