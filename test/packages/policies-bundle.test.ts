// Release: packages as users have them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterAll, expect, test } from 'vitest'
import { run } from '../../scripts/lib/run.js'
import { ensureBuilt } from '../support/built-core.js'

const PROGRAM = '../../scripts/package-users/bundled/policies.mjs'
/** CommonJS packages within an ES module need it for modules of Node. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url)"

// Nothing is installed there.
const folder = mkdtempSync(join(tmpdir(), 'sluice-policies-bundle-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.each(['cjs', 'esm'] as const)(
  'a document of 28 kB is read where everything is in one minified bundle, as %s',
  async (format) => {
    await ensureBuilt('core', 'express', 'policies')
    const outfile = join(folder, `app.${format === 'cjs' ? 'cjs' : 'mjs'}`)
    await build({
      entryPoints: [fileURLToPath(new URL(PROGRAM, import.meta.url))],
      // Where the packages are found.
      nodePaths: [fileURLToPath(new URL('../node_modules', import.meta.url))],
      outfile,
      bundle: true,
      minify: true,
      platform: 'node',
      format,
      banner: format === 'esm' ? { js: REQUIRE } : {},
      logLevel: 'error',
    })
    // pnpm sets NODE_PATH, by which programs find what is installed here.
    const env = { NODE_PATH: '' }
    expect(await run(process.execPath, [outfile], { cwd: folder, env, quiet: true })).toBe('works\n')
  },
  60_000,
)
