import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './project.js'

/** The settings of a release: whether npm has the packages, and the address of the source repository. */
const FILE = 'etc/published.json'

/** The part of the address that stands for the owner until there is one. */
const PLACEHOLDER = /\/OWNER\//

/** @typedef {{ published: boolean, repository: string }} Release */

/** @returns {Release} */
export const release = () => JSON.parse(readFileSync(join(root, FILE), 'utf8'))

/**
 * The address of the source repository, once it is known.
 *
 * @param {Release} settings
 */
export const addressOf = ({ repository }) => (PLACEHOLDER.test(repository) ? undefined : repository)

/**
 * Throws unless packages may be published with these settings: each of them shows the address, and its README what to install.
 *
 * @param {Release} settings
 */
export function requireRelease({ published, repository }) {
  if (PLACEHOLDER.test(repository))
    throw new Error(
      `${FILE}: repository: expected the address of the source repository, got the placeholder ${repository}`,
    )
  if (!published)
    throw new Error(`${FILE}: published: expected true, as the READMEs still say that npm does not have the packages`)
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
      `${FILE}: repository: expected the address of the source repository, such as ${example}, got ${address}`,
    )
  }
  const directory = `packages/${name}`
  return {
    homepage: `${address}/tree/main/${directory}#readme`,
    bugs: { url: `${address}/issues` },
    repository: { type: 'git', url: `git+${address}.git`, directory },
  }
}
