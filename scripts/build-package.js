// Builds the package in the current folder into dist/: node ../../scripts/build-package.js
//
// CommonJS is the program; the ES module re-exports it. A process that loads a package by `import` in one place and by
// `require` in another (Jest, a CommonJS plugin) therefore has one copy of every class, and one state.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { build } from 'esbuild'
import { run, whenStarted } from './lib/run.js'

/**
 * @param {string} folder of the package
 */
export async function buildPackage(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const dist = join(folder, 'dist')
  const program = join(dist, 'program.cjs')
  rmSync(dist, { recursive: true, force: true })

  await build({
    absWorkingDir: folder,
    entryPoints: ['src/index.ts'],
    outfile: program,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: `node${manifest.engines.node.replace('>=', '')}`,
    // What is installed beside it stays one copy, shared with everything else that uses it.
    packages: 'external',
    logLevel: 'warning',
  })

  // Node searches a CommonJS file that is imported for its exports, and every file that it re-exports by a plain
  // `module.exports = require(…)`: for the whole program that takes three times as long as to run it.
  writeFileSync(
    join(dist, 'index.cjs'),
    "'use strict'\nconst program = require('./program.cjs')\n\nmodule.exports = program\n",
  )
  const names = Object.keys(createRequire(program)(program)).sort()
  writeFileSync(
    join(dist, 'index.js'),
    `import program from './index.cjs'\n\nexport const { ${names.join(', ')} } = program\n`,
  )
  await run('tsc', ['-p', 'tsconfig.json'], { cwd: folder })

  // One set of declarations for both module systems: those of CommonJS, which is what runs. Two sets would make two
  // classes of each, which TypeScript does not take for one another.
  mkdirSync(join(dist, 'types'), { recursive: true })
  writeFileSync(join(dist, 'types/package.json'), '{ "type": "commonjs" }\n')
  for (const file of ['index.d.ts', 'index.d.cts'])
    writeFileSync(join(dist, file), "export * from './types/index.js'\n")
}

await whenStarted(import.meta.url, () => buildPackage(process.cwd()))
