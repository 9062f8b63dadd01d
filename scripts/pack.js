// `npm run pack`: packs the packages as for publishing, and prints the commands that install them in another project.
// `npm run pack -- express cli` prints those of some, with the packages that they depend on.
import { join } from 'node:path'
import { root } from './lib/project.js'
import { whenStarted } from './lib/run.js'
import { manifestOf, packAll } from './lib/users-project.js'

/**
 * Packages and those of ours that they depend on, in the order of `all`.
 *
 * @param {readonly string[]} wanted names without the scope
 * @param {readonly string[]} all
 * @returns {string[]}
 */
export function withDependencies(wanted, all) {
  const unknown = wanted.find((name) => !all.includes(name))
  if (unknown !== undefined) throw new Error(`npm run pack: expected packages of ${all.join(', ')}, got ${unknown}`)
  const found = new Set(wanted)
  for (const name of found) {
    for (const dependency of Object.keys(manifestOf(name).dependencies ?? {}))
      if (dependency.startsWith('@sluice/')) found.add(dependency.replace('@sluice/', ''))
  }
  return all.filter((name) => found.has(name))
}

/**
 * What to paste. npm takes the core for the dependency of the others; the other managers would ask the registry for it, unless
 * a setting of the project replaces it.
 *
 * @param {Record<string, string>} tarballs addresses of files, by the names of packages
 */
export function commandsFor(tarballs) {
  const files = Object.values(tarballs)
    .map((address) => (address.includes(' ') ? `'${address}'` : address))
    .join(' ')
  const replaced = JSON.stringify(tarballs, null, 2).replaceAll('\n', '\n  ')
  const lines = Object.entries(tarballs).map(([name, address]) => `  '${name}': '${address}'`)
  return `npm:

npm install ${files}

pnpm, with this in pnpm-workspace.yaml:

overrides:
${lines.join('\n')}

pnpm add ${files}

yarn, with this in package.json:

  "resolutions": ${replaced}

yarn add ${Object.entries(tarballs)
    .map(([name, address]) => `${name}@${address}`)
    .join(' ')}

Bun, with this in package.json:

  "overrides": ${replaced}

bun add ${files}
`
}

await whenStarted(import.meta.url, async () => {
  const tarballs = await packAll(join(root, '.tmp/pack'))
  const all = Object.keys(tarballs).map((name) => name.replace('@sluice/', ''))
  const wanted = process.argv.slice(2)
  const names = withDependencies(wanted.length > 0 ? wanted : all, all)
  const chosen = Object.fromEntries(names.map((name) => [`@sluice/${name}`, String(tarballs[`@sluice/${name}`])]))
  console.log(commandsFor(chosen))
})
