import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { transform } from 'esbuild'
import { foldLines, UNFOLD } from './fold-lines.js'

const FILE = 'scripts.cjs'

/**
 * An esbuild plugin: the sources of the Redis scripts become a file of their own beside the program, which is read when
 * the first of them is needed. A program without Redis never loads them.
 *
 * @param {string} dist where the program goes
 * @returns {import('esbuild').Plugin}
 */
export function scriptsApart(dist) {
  return {
    name: 'scripts-apart',
    setup(building) {
      /** @type {Record<string, string>} */
      const sources = {}
      building.onResolve({ filter: /^\.\/scripts\.cjs$/ }, () => ({ path: `./${FILE}`, external: true }))
      building.onLoad({ filter: /[\\/]scripts\.generated\.ts$/ }, async ({ path }) => {
        const { code } = await transform(readFileSync(path, 'utf8'), { loader: 'ts', format: 'esm' })
        /** @type {Record<string, unknown>} */
        const generated = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`)
        const lines = Object.entries(generated).map(
          ([name, value]) => `export const ${name} = ${literal(value, name, sources)}`,
        )
        return { contents: `${lines.join('\n')}\n`, loader: 'js' }
      })
      building.onEnd(() => {
        if (Object.keys(sources).length === 0) return
        // Scripts of about one length are those of one kind of cell: near each other they are compressed as one.
        const sorted = Object.entries(sources).sort(([, a], [, b]) => b.length - a.length)
        const text = JSON.stringify(foldLines(Object.fromEntries(sorted)))
        writeFileSync(join(dist, FILE), `'use strict'\n${UNFOLD}\nmodule.exports = unfold(${text})\n`)
      })
    },
  }
}

/**
 * A value as text, in which every `source` is read from the other file when it is asked for.
 *
 * @param {unknown} value
 * @param {string} name unique, of the source
 * @param {Record<string, string>} sources gets the sources, by name
 * @returns {string}
 */
function literal(value, name, sources) {
  if (Array.isArray(value)) return `[${value.map((each, i) => literal(each, `${name}_${i}`, sources)).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).map(([field, each]) => {
    if (field !== 'source') return `${field}: ${literal(each, `${name}_${field}`, sources)}`
    sources[name] = each
    return `get source() { return require('./${FILE}').${name} }`
  })
  return `{ ${fields.join(', ')} }`
}
