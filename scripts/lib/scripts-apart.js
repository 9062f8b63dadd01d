import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync } from 'node:zlib'
import { transform } from 'esbuild'

const FILE = 'scripts.cjs'

/**
 * An esbuild plugin: the sources of the Redis scripts are compressed to a tenth, and decompressed when the first of them is
 * needed. They are larger than the rest of the program.
 *
 * @param {string} [apart] the folder of a program whose sources are in a file of their own, so that a program without Redis
 * never loads them. Without it they are in the module, which bundlers leave out.
 * @returns {import('esbuild').Plugin}
 */
export function scriptsApart(apart) {
  return {
    name: 'scripts-apart',
    setup(building) {
      let written = ''
      building.onResolve({ filter: /^\.\/scripts\.cjs$/ }, () => ({ path: `./${FILE}`, external: true }))
      building.onLoad({ filter: /[\\/]scripts\.generated\.ts$/ }, async ({ path }) => {
        const { code } = await transform(readFileSync(path, 'utf8'), { loader: 'ts', format: 'esm' })
        /** @type {Record<string, unknown>} */
        const generated = await import(`data:text/javascript;base64,${Buffer.from(code).toString('base64')}`)
        const { lines, values } = apartFrom(generated)
        const packed = JSON.stringify(pack(values))
        written = `'use strict'\nmodule.exports = ${packed}\n`
        const text = apart ? `require('./${FILE}')` : packed
        return { contents: [UNPACK, `const packed = () => ${text}`, ...lines, ''].join('\n'), loader: 'js' }
      })
      building.onEnd(() => {
        if (apart && written) writeFileSync(join(apart, FILE), written)
      })
    },
  }
}

/**
 * @param {readonly unknown[]} values
 * @returns {string} in which no passage is written twice
 */
export function pack(values) {
  return brotliCompressSync(JSON.stringify(values)).toString('base64')
}

/** The source of a function that adds to an object, as one of its fields, one of the values that `packed()` has. */
export const UNPACK = `let values
const unpacked = (i, field, object) => Object.defineProperty(object, field, {
  enumerable: true,
  get() {
    // Not imported: programs without Redis never need it.
    const { brotliDecompressSync } = process.getBuiltinModule('node:zlib')
    values ??= JSON.parse(brotliDecompressSync(Buffer.from(packed(), 'base64')).toString())
    return values[i]
  },
})`

/** Fields whose values are packed: the source of a script, or the pieces of it. */
const PACKED = ['source', 'pieces']

/**
 * @param {Record<string, unknown>} exported
 * @returns {{ lines: string[], values: unknown[] }} the exports as text, in which each packed value is a number
 */
function apartFrom(exported) {
  /** @type {unknown[]} */
  const values = []
  /** @type {(value: unknown) => string} */
  const literal = (value) => {
    if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    const field = PACKED.find((each) => Object.hasOwn(value, each))
    const fields = Object.entries(value).filter(([name]) => name !== field)
    const text = `{ ${fields.map(([name, each]) => `${name}: ${literal(each)}`).join(', ')} }`
    if (field === undefined) return text
    const i = values.push(/** @type {Record<string, unknown>} */ (value)[field]) - 1
    return `unpacked(${i}, '${field}', ${text})`
  }
  const lines = Object.entries(exported).map(([name, value]) => `export const ${name} = ${literal(value)}`)
  return { lines, values }
}
