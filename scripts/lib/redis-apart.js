import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, transform } from 'esbuild'

export const REDIS_FILE = 'redis.cjs'
/** The module of `redisStore`, and all that it alone imports, make the file. */
const ENTRY = 'src/redis-store.ts'
const SHARED = 'shared:'
/** `import { wholeNumber, limitOf as limitOf2 } from "…";`, or `import * as counter from "…";` */
const IMPORTS = /^import (\{[^}]*\}|\* as \w+) from "shared:([^"]*)";\n/gm

/** @param {string} folder of a package */
export const hasRedisStore = (folder) => existsSync(join(folder, ENTRY))

/** @typedef {import('esbuild').BuildOptions & { outfile: string, absWorkingDir: string, metafile: true }} ProgramOptions */

/**
 * Builds a program whose part for Redis, a quarter of it, is in a file of its own, which the first call of `redisStore` loads. Node
 * reads every line of a file that it loads, which is nearly half of what an import costs.
 *
 * What both need is the program's. It hands that over, so that there is one copy of each class however often modules are
 * loaded again, as Jest does.
 *
 * @param {ProgramOptions} options
 * @param {(text: string) => Promise<string>} finish makes the part for Redis shorter, as the program
 */
export async function buildWithRedisApart(options, finish) {
  const plugins = options.plugins ?? []
  const buildProgram = (/** @type {Taken} */ taken, write = true) =>
    build({ ...options, write, plugins: [loadsRedisLater(taken), ...plugins] })

  const alone = await buildProgram({ imports: '', names: [] }, false)
  const shared = new Set(Object.keys(alone.metafile.inputs).map((file) => join(options.absWorkingDir, file)))
  const part = await build({
    ...options,
    stdin: undefined,
    entryPoints: [join(options.absWorkingDir, ENTRY)],
    format: 'esm',
    write: false,
    plugins: [leavesOut(shared), ...plugins],
  })
  const text = String(part.outputFiles[0]?.text)
  const taken = takenIn(text)
  const { code } = await transform(text.replace(IMPORTS, ''), { format: 'cjs', platform: 'node' })
  const apart = await finish(
    `module.exports = function ({ ${taken.names.join(', ')} }, module) {\n${code}\nreturn module.exports\n}`,
  )
  // A function in parentheses is compiled at once, and not read before.
  writeFileSync(
    join(options.outfile, '..', REDIS_FILE),
    apart.replace('function', '(function').replace(/;?\s*$/, ')\n'),
  )

  const program = await buildProgram(taken)
  return { ...program.metafile.inputs, ...part.metafile.inputs }
}

/**
 * @typedef {object} Taken what the part for Redis takes from the program
 * @property {string} imports of all of it
 * @property {string[]} names under which the part uses it
 */

/**
 * @param {string} text of the part for Redis, as an ES module
 * @returns {Taken}
 */
function takenIn(text) {
  const found = [...text.matchAll(IMPORTS)].map(([, names, file]) => ({ names: String(names), file }))
  return {
    imports: found.map(({ names, file }) => `import ${names} from ${JSON.stringify(file)}`).join('\n'),
    // Of `a as b`, `b`.
    names: found.flatMap(({ names }) => [...names.matchAll(/([\w$]+)\s*(?:[,}]|$)/g)].map(([, name]) => String(name))),
  }
}

/**
 * @param {Taken} taken
 * @returns {import('esbuild').Plugin}
 */
const loadsRedisLater = ({ imports, names }) => ({
  name: 'loads-redis-later',
  setup(building) {
    building.onResolve({ filter: /^\.\/redis\.cjs$/ }, () => ({ path: `./${REDIS_FILE}`, external: true }))
    building.onLoad({ filter: /[\\/]redis-store\.ts$/ }, () => ({
      contents: `${imports}
let redis
export function redisStore(client, options = {}) {
  redis ??= require('./${REDIS_FILE}')({ ${names.join(', ')} }, { exports: {} })
  return redis.redisStore(client, options)
}`,
      loader: 'js',
    }))
  },
})

/**
 * @param {ReadonlySet<string>} files of the program
 * @returns {import('esbuild').Plugin}
 */
const leavesOut = (files) => ({
  name: 'leaves-out',
  setup(building) {
    building.onResolve({ filter: /^\./ }, ({ path, resolveDir }) => {
      const file = join(resolveDir, path).replace(/\.js$/, '.ts')
      return files.has(file) ? { path: SHARED + file, external: true, sideEffects: false } : undefined
    })
  },
})
