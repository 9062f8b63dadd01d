import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PACKAGES = fileURLToPath(new URL('../../packages', import.meta.url))

/**
 * Sees to it that plain Node processes find a built `@sluice/core` that is no older than its source.
 * The whole test run builds before it tests; this is for a test file that is run by itself.
 */
export function ensureBuiltCore(): void {
  ensureBuilt('core')
}

/** Looking at the dates of all files takes as long as some tests, so a process looks once. */
const looked = new Set<string>()

/** The same for these packages, in the order of their imports. */
export function ensureBuilt(...names: readonly string[]): void {
  for (const name of names) {
    if (looked.has(name)) continue
    looked.add(name)
    const dir = join(PACKAGES, name)
    if (newest(join(dir, 'dist'), /\.cjs$/) >= newest(join(dir, 'src'), /\.ts$/)) continue
    execFileSync(process.execPath, [join(PACKAGES, '../scripts/build-package.js')], { cwd: dir, stdio: 'inherit' })
  }
}

/** When the last of these files was written, in ms since 1970; 0 if there is none. */
function newest(dir: string, names: RegExp): number {
  let latest = 0
  try {
    for (const entry of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
      if (names.test(entry)) latest = Math.max(latest, statSync(join(dir, entry)).mtimeMs)
    }
  } catch {
    // Not built yet.
  }
  return latest
}
