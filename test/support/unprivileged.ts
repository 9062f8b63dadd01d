import { chownSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The user and group without rights, for tests that run as root. */
const NOBODY = 65534

const isRoot = () => process.getuid?.() === 0

/** Makes a temporary folder that belongs to the user of `unprivileged`. */
export function ownDirectory(prefix: string): string {
  const folder = mkdtempSync(join(tmpdir(), prefix))
  if (isRoot()) chownSync(folder, NOBODY, NOBODY)
  return folder
}

/** The command that starts a program without the rights of root, as some servers refuse to run as root. */
export function unprivileged(program: string, ...args: string[]): [string, string[]] {
  if (!isRoot()) return [program, args]
  return ['setpriv', [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', program, ...args]]
}
