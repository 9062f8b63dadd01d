import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './project.js'

/**
 * The address of the source repository, `repository` of the root package.json: the setting that a release needs.
 *
 * @returns {string | undefined}
 */
export function repository() {
  return JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).repository
}

/**
 * The fields of a package's manifest that follow from the address.
 *
 * @param {string} name of the package, without the scope
 * @param {unknown} address such as `https://github.com/you/sluice`
 */
export function linksOf(name, address) {
  if (typeof address !== 'string' || !/^https:\/\/[^/]+\/[^/]+\/[^/]+(?<!\.git|\/)$/.test(address)) {
    const example = '"https://github.com/you/sluice"'
    throw new Error(
      `package.json: repository: expected the address of the source repository, such as ${example}, got ${address}`,
    )
  }
  const directory = `packages/${name}`
  return {
    homepage: `${address}/tree/main/${directory}#readme`,
    bugs: { url: `${address}/issues` },
    repository: { type: 'git', url: `git+${address}.git`, directory },
  }
}
