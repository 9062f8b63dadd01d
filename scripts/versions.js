// The built packages as their users install them, on every version that they declare: npm run deep -- versions
// Each Node runs with the lowest and the newest version of every framework and Redis client, and the newest of the lowest
// major.
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { engines, root } from './lib/project.js'
import { whenStarted } from './lib/run.js'
import { install, manifestOf, runIn, withTarballs } from './lib/users-project.js'

/** Programs that have to work for every user, whatever the versions. */
const PROGRAMS = ['versions.mjs', 'both.mjs']
/** Packages of which a program needs the same version as of a peer. */
const BESIDE = /** @type {Record<string, string[]>} */ ({
  '@nestjs/core': ['@nestjs/platform-express', '@nestjs/platform-fastify'],
})
/** Beside the lowest that `engines` allows. */
const NODE_MAJORS = ['22', '24']

/**
 * The versions of a range such as `>=5.4 <7` that are tried.
 *
 * @param {string} name for messages
 * @param {string} range
 * @returns {{ lowest: string, 'lowest major': string, newest: string }}
 */
export function versionsOf(name, range) {
  const [, major, minor, end] = /^>=(\d+)(?:\.(\d+))? <(\d+)$/.exec(range) ?? []
  if (major === undefined) throw new Error(`${name}: expected a range such as ">=5.4 <7", got ${JSON.stringify(range)}`)
  return {
    lowest: `${major}.${minor ?? 0}.0`,
    'lowest major': `^${major}.${minor ?? 0}.0`,
    newest: `${Number(end) - 1}`,
  }
}

/** @param {string} folder @returns {Promise<string[]>} programs, one for each Node that is tried */
async function installNodes(folder) {
  const lowest = /** @type {string} */ (/\d+\.\d+/.exec(engines.node)?.[0])
  const nodes = []
  for (const version of [`${lowest}.0`, ...NODE_MAJORS]) {
    const into = join(folder, `node-${version}`)
    await install(into, { node: version })
    nodes.push(join(into, 'node_modules/node/bin/node'))
  }
  return nodes
}

/** @returns {Record<string, Record<string, string>>} versions to install beside our packages, by what they are */
export function setsOfPeers() {
  /** @type {Record<string, Record<string, string>>} */
  const sets = {}
  for (const name of readdirSync(join(root, 'packages'))) {
    for (const [peer, range] of Object.entries(manifestOf(name).peerDependencies ?? {})) {
      if (peer.startsWith('@sluice/')) continue
      for (const [set, version] of Object.entries(versionsOf(peer, String(range)))) {
        for (const each of [peer, ...(BESIDE[peer] ?? [])]) sets[set] = { ...sets[set], [each]: version }
      }
    }
  }
  return sets
}

await whenStarted(import.meta.url, () =>
  withTarballs('versions', async ({ folder, tarballs, env }) => {
    const nodes = await installNodes(folder)
    for (const [set, peers] of Object.entries(setsOfPeers())) {
      const project = join(folder, set.replaceAll(' ', '-'))
      await install(project, { ...tarballs, ...peers })
      for (const node of nodes) {
        for (const program of PROGRAMS) {
          const printed = await runIn(project, [node], program, env)
          if (printed !== '') console.log(`${set}: ${printed}`)
        }
      }
    }
  }),
)
