// The modules of the API reference: each export of a package that users import, under the name that they import it by.
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const PACKAGES = fileURLToPath(new URL('../packages/', import.meta.url))

/** Exports that only our packages import. */
const OWN = ['./internal', './platform']

/**
 * The sources of the modules, by name; for example `@sluice/core/store` by `…/packages/core/src/entries/store.ts`.
 *
 * @returns {Map<string, string>}
 */
export function apiModules() {
  const modules = readdirSync(PACKAGES).flatMap((folder) => {
    const { name, exports } = JSON.parse(readFileSync(`${PACKAGES}${folder}/package.json`, 'utf8'))
    return Object.entries(exports)
      .filter(([path, { '@sluice/source': source }]) => source !== undefined && !OWN.includes(path))
      .map(([path, { '@sluice/source': source }]) => [
        `${name}${path.slice(1)}`,
        `${PACKAGES}${folder}/${source.slice(2)}`,
      ])
  })
  return new Map(modules)
}
