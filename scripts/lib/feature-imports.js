// The imports of features by the rest of the core. The core knows no feature: this list may only become shorter, until it is empty.
import { readdirSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { root } from './project.js'

const SRC = join(root, 'packages/core/src')
const FEATURES = 'features/'
/** `import … from './x.js'`, `export … from './x.js'` and `import('./x.js')`. */
const IMPORT = /(?:from|import\() ?'(\.[^']+)'/g

/**
 * What files of the core import of features, by their path. `index.ts` and `entries/` compose the package.
 *
 * @type {Record<string, readonly string[]>}
 */
export const LEFT = {
  'limiter/charge-ledger.ts': ['meters/meter.ts', 'meters/request-meter.ts'],
  'verdict/decision.ts': ['meters/meter.ts'],
  'verdict/verdict-of-several.ts': ['meters/meter.ts', 'meters/stream-meter.ts'],
  'verdict/verdict.ts': ['meters/meter.ts'],
}

/** @returns {Record<string, string[]>} as `LEFT`, as it is */
export function featureImports() {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && file.includes('/') && !/^(?:features|entries)\//.test(file))
    .sort()
  const imports = files.map((file) => {
    const all = [...readFileSync(join(SRC, file), 'utf8').matchAll(IMPORT)].map(([, path = '']) =>
      posix.join(posix.dirname(file), path.replace(/\.js$/, '.ts')),
    )
    const ofFeatures = all.filter((path) => path.startsWith(FEATURES)).map((path) => path.slice(FEATURES.length))
    return /** @type {const} */ ([file, [...new Set(ofFeatures)].sort()])
  })
  return Object.fromEntries(imports.filter(([, paths]) => paths.length > 0))
}

/**
 * What differs from the list.
 *
 * @param {Record<string, readonly string[]>} left
 * @param {Record<string, readonly string[]>} found
 * @returns {string[]}
 */
export function problemsOfFeatures(left, found) {
  const pairs = (/** @type {Record<string, readonly string[]>} */ imports) =>
    Object.entries(imports).flatMap(([file, paths]) => paths.map((path) => `${file} imports features/${path}`))
  const known = new Set(pairs(left))
  const now = new Set(pairs(found))
  return [
    ...[...now].filter((pair) => !known.has(pair)).map((pair) => `${pair}: the core imports no feature`),
    ...[...known].filter((pair) => !now.has(pair)).map((pair) => `no longer: ${pair}: take it out of LEFT`),
  ]
}
