/** @typedef {<Thing extends { end: () => Promise<void> }>(thing: Thing) => Thing} Keep */

/**
 * Ends everything that was kept, last first, however `use` comes out.
 *
 * @template T
 * @param {(keep: Keep) => Promise<T>} use
 * @returns {Promise<T>}
 */
export async function ending(use) {
  /** @type {{ end: () => Promise<void> }[]} */
  const kept = []
  try {
    return await use((thing) => {
      kept.push(thing)
      return thing
    })
  } finally {
    for (const thing of kept.reverse()) await thing.end()
  }
}
