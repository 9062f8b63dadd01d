import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { transform } from 'esbuild'

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
        const lines = Object.entries(generated).map(([name, value]) => {
          if (!hasSource(value)) return `export const ${name} = ${JSON.stringify(value)}`
          const { source, ...rest } = value
          sources[name] = source
          const fields = Object.entries(rest).map(([field, each]) => `${field}: ${JSON.stringify(each)}`)
          return `export const ${name} = { ${fields.join(', ')}, get source() { return require('./${FILE}').${name} } }`
        })
        return { contents: `${lines.join('\n')}\n`, loader: 'js' }
      })
      building.onEnd(() => {
        if (Object.keys(sources).length === 0) return
        writeFileSync(join(dist, FILE), `'use strict'\nmodule.exports = ${JSON.stringify(sources, null, 1)}\n`)
      })
    },
  }
}

/**
 * @param {unknown} value
 * @returns {value is { source: string }}
 */
function hasSource(value) {
  return typeof value === 'object' && value !== null && 'source' in value && typeof value.source === 'string'
}
