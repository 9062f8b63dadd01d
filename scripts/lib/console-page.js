import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { licencesOf } from './licences.js'

const FILE = 'page.cjs'
/** The modules in which the console reads the files of its page. */
const READER = /[\\/]console[\\/]src[\\/]page[\\/]files\.ts$/
/**
 * An esbuild plugin: the page of the console, built for browsers, is in a file of its own beside the program. Only a process that
 * shows the page loads it, and bundlers of servers find it.
 *
 * @param {string} dist of the program
 * @returns {import('esbuild').Plugin}
 */
export function pageApart(dist) {
  return {
    name: 'page-apart',
    setup(building) {
      building.onResolve({ filter: /^\.\/page\.cjs$/ }, () => ({ path: `./${FILE}`, external: true }))
      building.onLoad({ filter: READER }, async ({ path }) => {
        const { files, notice } = await buildPage(join(path, '../../../page'))
        writeFileSync(join(dist, FILE), `'use strict'\nmodule.exports = ${JSON.stringify(files)}\n`)
        writeFileSync(join(dist, 'NOTICE'), notice)
        return { contents: `export const readFiles = () => require('./${FILE}')\n`, loader: 'js' }
      })
    },
  }
}

/**
 * @param {string} folder of the page's sources
 * @returns {Promise<{ files: Record<string, string>, notice: string }>} its files by name, and the licences of what is in them
 */
async function buildPage(folder) {
  const { outputFiles, metafile } = await build({
    absWorkingDir: folder,
    entryPoints: { app: 'main.tsx' },
    outdir: folder,
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: ['chrome111', 'firefox115', 'safari16.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    minify: true,
    // The text says what it says, wherever it is served.
    charset: 'ascii',
    legalComments: 'none',
    banner: { js: '/* Licences of what is in here: NOTICE of @sluice/console. */' },
    metafile: true,
    logLevel: 'warning',
  })
  const textOf = (/** @type {string} */ ending) => outputFiles.find(({ path }) => path.endsWith(ending))?.text ?? ''
  return {
    files: {
      'index.html': readFileSync(join(folder, 'index.html'), 'utf8'),
      'app.js': textOf('.js'),
      'app.css': textOf('.css'),
      'icon.svg': readFileSync(join(folder, 'icon.svg'), 'utf8'),
    },
    notice: noticeOf(Object.keys(metafile.inputs).map((file) => join(folder, file))),
  }
}

/**
 * The licences of the packages that files are from.
 *
 * @param {string[]} files
 */
function noticeOf(files) {
  const licences = licencesOf(files).map((licence) => `${licence}\n`)
  return `The page of @sluice/console contains these packages:\n\n${licences.join(`\n${'-'.repeat(80)}\n\n`)}`
}
