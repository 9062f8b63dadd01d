/** @typedef {{ name: string, source: string }} Entry `http` and `src/entries/http.ts` of `@sluice/core/http` */

/**
 * The entries that users import, by the package's `exports`; the main one is called `index`.
 *
 * @param {{ exports: Record<string, unknown> }} manifest
 * @returns {Entry[]}
 */
export function entriesOf({ exports }) {
  return Object.entries(exports).flatMap(([path, conditions]) => {
    const source = /** @type {Record<string, string> | string} */ (conditions)
    if (typeof source === 'string') return []
    return [{ name: path === '.' ? 'index' : path.slice(2), source: String(source['@sluice/source']).slice(2) }]
  })
}

/**
 * An entry's module, without ending: `entries/http`.
 *
 * @param {Entry} entry
 */
export function moduleOf({ source }) {
  return source.replace(/^src\//, '').replace(/\.ts$/, '')
}
