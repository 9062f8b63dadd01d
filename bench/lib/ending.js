/** @typedef {<Thing extends { end: () => Promise<void> }>(thing: Thing) => Thing} Keep */

/**
 * Ends everything passed to `keep`, last first, whatever the outcome of `use`.
 *
 * @template T
 * @param {(keep: Keep) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function ending(use) {
  /** @type {{ end: () => Promise<void> }[]} */
  const things = []
  try {
    return await use((thing) => {
      things.push(thing)
      return thing
    })
  } finally {
    for (const thing of things.reverse()) await thing.end()
  }
}
