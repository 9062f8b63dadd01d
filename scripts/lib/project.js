// The paths of the project, and its version of pnpm. Plain Node: runs before anything is installed.
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder that holds the root package.json. */
export const root = join(dirname(fileURLToPath(import.meta.url)), '../..')

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** The requirements of the root package.json. */
export const engines = /** @type {{ node: string }} */ (manifest.engines)

/** Throws unless this Node is at least the version that the `engines` field requires. */
export function requireNode(have = process.versions.node, want = engines.node) {
  const [haveMajor = 0, haveMinor = 0] = have.split('.').map(Number)
  const [wantMajor = 0, wantMinor = 0] = want.replace('>=', '').split('.').map(Number)
  if (haveMajor > wantMajor || (haveMajor === wantMajor && haveMinor >= wantMinor)) return
  throw new Error(`Node ${want} is needed, this is ${have}`)
}
