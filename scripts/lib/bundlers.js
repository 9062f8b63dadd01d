// The bundlers that users have, as installed in a project of theirs.
import { createRequire, isBuiltin } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

/** @typedef {'esm' | 'cjs'} Format */
/**
 * @typedef {object} Bundling
 * @property {string} entry
 * @property {string} outfile
 * @property {(id: string) => boolean} isExternal
 * @property {Format} [format] ESM by default
 * @property {boolean} [isMinified] false by default
 */
/** @typedef {(load: (name: string) => Promise<any>, bundling: Bundling) => Promise<unknown>} Bundler */

/** What programs in CommonJS need within an ES module, where they import modules of Node: see docs/module-systems.md. */
const REQUIRE =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url)"

/** @type {Record<string, Bundler>} */
const BUNDLERS = {
  async esbuild(load, { entry, outfile, isExternal, format = 'esm', isMinified = false }) {
    const { build } = await load('esbuild')
    const external = {
      name: 'external',
      setup: (/** @type {import('esbuild').PluginBuild} */ { onResolve }) =>
        onResolve({ filter: /^[^.]/ }, ({ path }) => (isExternal(path) ? { path, external: true } : undefined)),
    }
    await build({
      entryPoints: [entry],
      outfile,
      bundle: true,
      platform: 'node',
      format,
      minify: isMinified,
      ...(format === 'esm' && { banner: { js: REQUIRE } }),
      plugins: [external],
      logLevel: 'error',
    })
  },
  async rollup(load, { entry, outfile, isExternal, format = 'esm', isMinified = false }) {
    const [{ rollup }, commonjs, json, resolve, terser] = await Promise.all([
      load('rollup'),
      load('@rollup/plugin-commonjs'),
      load('@rollup/plugin-json'),
      load('@rollup/plugin-node-resolve'),
      load('@rollup/plugin-terser'),
    ])
    const plugins = [resolve.default({ preferBuiltins: true }), commonjs.default(), json.default()]
    const bundle = await rollup({
      input: entry,
      external: (/** @type {string} */ id) => isExternal(id),
      plugins,
      onLog() {},
    })
    await bundle.write({
      file: outfile,
      format,
      inlineDynamicImports: true,
      ...(format === 'esm' && { banner: REQUIRE }),
      plugins: isMinified ? [terser.default()] : [],
    })
  },
  async webpack(load, { entry, outfile, isExternal, format = 'esm', isMinified = false }) {
    const { default: webpack } = await load('webpack')
    const isModule = format === 'esm'
    const compiler = webpack({
      entry,
      target: 'node20',
      mode: 'production',
      optimization: { minimize: isMinified },
      ...(isModule && { experiments: { outputModule: true } }),
      externals: (
        /** @type {{ request: string, dependencyType: string }} */ external,
        /** @type {Function} */ done,
      ) => {
        const { request, dependencyType } = external
        // Of modules of Node it knows whether they are imported or required.
        if (!isExternal(request) || isBuiltin(request)) return done()
        done(null, `${isModule && dependencyType !== 'commonjs' ? 'module-import' : 'node-commonjs'} ${request}`)
      },
      output: {
        path: dirname(outfile),
        filename: basename(outfile),
        ...(isModule && { module: true, chunkFormat: 'module' }),
      },
    })
    await new Promise((resolve, reject) =>
      compiler.run((/** @type {Error | null} */ error, /** @type {any} */ stats) =>
        error || stats.hasErrors() ? reject(error ?? new Error(stats.toString('errors-only'))) : resolve(stats),
      ),
    )
  },
  async 'Vite SSR'(load, { entry, outfile, isExternal, format = 'esm', isMinified = false }) {
    const { build } = await load('vite')
    await build({
      root: dirname(outfile),
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true },
      build: {
        ssr: entry,
        outDir: dirname(outfile),
        emptyOutDir: false,
        minify: isMinified,
        rollupOptions: {
          external: (/** @type {string} */ id) => isExternal(id),
          output: { format, entryFileNames: basename(outfile) },
        },
      },
    })
  },
}

export const bundlers = Object.keys(BUNDLERS)

/**
 * Bundles a program by a bundler of the project.
 *
 * @param {string} project
 * @param {string} name of the bundler
 * @param {Bundling} bundling
 */
export async function bundleBy(project, name, bundling) {
  const { resolve } = createRequire(join(project, 'package.json'))
  const bundler = /** @type {Bundler} */ (BUNDLERS[name])
  await bundler((/** @type {string} */ id) => import(pathToFileURL(resolve(id)).href), bundling)
}
