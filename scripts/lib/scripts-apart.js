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
        const { lines, sources } = withoutSources(generated)
        const packed = JSON.stringify(pack(sources))
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
 * @param {readonly string[]} texts
 * @returns {string} in which no passage is written twice
 */
export function pack(texts) {
  return brotliCompressSync(JSON.stringify(texts)).toString('base64')
}

/** The source of a function that adds to an object, as its `source`, one of the texts that `packed()` has. */
export const UNPACK = `import { brotliDecompressSync } from 'node:zlib'
let sources
const withSource = (i, object) => Object.defineProperty(object, 'source', {
  enumerable: true,
  get() {
    sources ??= JSON.parse(brotliDecompressSync(Buffer.from(packed(), 'base64')).toString())
    return sources[i]
  },
})`

/**
 * @param {Record<string, unknown>} exported
 * @returns {{ lines: string[], sources: string[] }} the exports as text, in which each `source` is a number
 */
function withoutSources(exported) {
  /** @type {string[]} */
  const sources = []
  /** @type {string[]} */
  const lines = []
  /** @type {Map<object, string>} The names of objects with a source: many are in several scripts. */
  const names = new Map()
  /** @type {(value: unknown) => string} */
  const literal = (value) => {
    if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
    if (typeof value !== 'object' || value === null) return JSON.stringify(value)
    const known = names.get(value)
    if (known) return known
    const { source, ...rest } = /** @type {Record<string, unknown>} */ (value)
    const text = `{ ${Object.entries(rest)
      .map(([field, each]) => `${field}: ${literal(each)}`)
      .join(', ')} }`
    if (typeof source !== 'string') return text
    if (!sources.includes(source)) sources.push(source)
    const name = `part${names.size + 1}`
    names.set(value, name)
    lines.push(`const ${name} = withSource(${sources.indexOf(source)}, ${text})`)
    return name
  }
  for (const [name, value] of Object.entries(exported)) lines.push(`export const ${name} = ${literal(value)}`)
  return { lines, sources }
}
