// The built packages in the bundles of their users: npm run deep -- bundlers [-- <name> …]
// Each bundler makes a server in every way that keeps one copy of the core, and in one that makes two, which is an error.
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ensureRedis } from './ensure-redis.js'
import { freePort } from './lib/ports.js'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'
import { startThrowawayRedis } from './lib/throwaway-redis.js'
import { install, packAll, users } from './lib/users-project.js'

const folder = join(root, '.tmp/bundlers')
const project = join(folder, 'project')

const INSTALLED = {
  '@rollup/plugin-commonjs': '^29',
  '@rollup/plugin-node-resolve': '^16',
  esbuild: '^0.28',
  express: '^5',
  ioredis: '^6',
  'prom-client': '^15',
  rollup: '^4',
  vite: '^8',
  webpack: '^5',
}
/** What the server does not bundle in any way: these load files of their own. */
const NEVER_BUNDLED = ['express', 'ioredis', 'prom-client']

/** The packages that stay outside of the bundle, and the outcome. */
const WAYS = /** @type {Record<string, { external: RegExp[], error?: RegExp }>} */ ({
  'all bundled': { external: [] },
  'all external': { external: [/^@sluice\//, /^other-package$/] },
  'the core external': { external: [/^@sluice\/core/, /^other-package$/, /^@sluice\/prometheus$/] },
  'a package beside it external': {
    external: [/^@sluice\/prometheus$/],
    error: /TWO_COPIES.*another copy of @sluice\/core.*node_modules.*bundle all of them or none/s,
  },
})

/** Another package of the project, in CommonJS. */
const OTHER = `const { createLimiter, keyed, Verdict } = require('@sluice/core')
exports.Verdict = Verdict
exports.byClient = keyed('client', ({ ip }) => ip)
exports.makeLimiter = (options) => createLimiter(options)
`

/** @typedef {(entry: string, outfile: string, isExternal: (id: string) => boolean) => Promise<unknown>} Bundler */

const load = (/** @type {string} */ name) =>
  import(pathToFileURL(createRequire(join(project, 'package.json')).resolve(name)).href)

/** @type {Record<string, Bundler>} */
const BUNDLERS = {
  async esbuild(entry, outfile, isExternal) {
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
      format: 'esm',
      plugins: [external],
      logLevel: 'error',
    })
  },
  async rollup(entry, outfile, isExternal) {
    const [{ rollup }, commonjs, resolve] = await Promise.all([
      load('rollup'),
      load('@rollup/plugin-commonjs'),
      load('@rollup/plugin-node-resolve'),
    ])
    const plugins = [resolve.default({ preferBuiltins: true }), commonjs.default()]
    const bundle = await rollup({ input: entry, external: (/** @type {string} */ id) => isExternal(id), plugins })
    await bundle.write({ file: outfile, format: 'es', inlineDynamicImports: true })
  },
  async webpack(entry, outfile, isExternal) {
    const { default: webpack } = await load('webpack')
    const compiler = webpack({
      entry,
      target: 'node20',
      mode: 'production',
      optimization: { minimize: false },
      experiments: { outputModule: true },
      externalsType: 'module',
      externals: (/** @type {{ request: string }} */ { request }, /** @type {Function} */ done) =>
        isExternal(request) ? done(null, request) : done(),
      output: { path: project, filename: outfile.slice(project.length + 1), module: true, chunkFormat: 'module' },
    })
    await new Promise((resolve, reject) =>
      compiler.run((/** @type {Error | null} */ error, /** @type {any} */ stats) =>
        error || stats.hasErrors() ? reject(error ?? new Error(stats.toString('errors-only'))) : resolve(stats),
      ),
    )
  },
  async 'Vite SSR'(entry, outfile, isExternal) {
    const { build } = await load('vite')
    await build({
      root: project,
      configFile: false,
      logLevel: 'error',
      ssr: { noExternal: true },
      build: {
        ssr: entry,
        outDir: project,
        emptyOutDir: false,
        minify: false,
        rollupOptions: {
          external: (/** @type {string} */ id) => isExternal(id),
          output: { entryFileNames: outfile.slice(project.length + 1) },
        },
      },
    })
  },
}

/** @param {string[]} names of bundlers @param {string} redisUrl */
async function tryAll(names, redisUrl) {
  for (const name of names) {
    for (const [way, { external, error }] of Object.entries(WAYS)) {
      const outfile = join(project, `${name} ${way}.mjs`.replaceAll(' ', '-').toLowerCase())
      const isExternal = (/** @type {string} */ id) =>
        id.startsWith('node:') || NEVER_BUNDLED.includes(id) || external.some((each) => each.test(id))
      await BUNDLERS[name]?.(join(project, 'bundled.mjs'), outfile, isExternal)
      const printed = await run(process.execPath, [outfile], {
        cwd: project,
        env: { REDIS_URL: redisUrl },
        quiet: true,
      }).catch(({ message }) => String(message))
      if (!(error ?? /^one copy$/m).test(printed)) throw new Error(`${name}, ${way}:\n${printed}`)
      console.log(`${name}, ${way}: ${error ? 'an error says that there are two copies' : 'one copy'}`)
    }
  }
}

await whenStarted(import.meta.url, async () => {
  const named = process.argv.slice(2)
  const unknown = named.find((name) => !Object.hasOwn(BUNDLERS, name))
  if (unknown !== undefined) throw new Error(`there is no ${unknown}; there are ${Object.keys(BUNDLERS).join(', ')}`)
  await ensureRedis()
  rmSync(folder, { recursive: true, force: true })
  const tarballs = await packAll(folder)
  const { '@sluice/core': core, '@sluice/express': express, '@sluice/prometheus': prometheus } = tarballs
  const ours = /** @type {Record<string, string>} */ ({
    '@sluice/core': core,
    '@sluice/express': express,
    '@sluice/prometheus': prometheus,
  })
  await install(project, { ...INSTALLED, ...ours })
  const other = join(project, 'node_modules/other-package')
  mkdirSync(other, { recursive: true })
  writeFileSync(join(other, 'package.json'), '{ "name": "other-package", "version": "1.0.0", "main": "index.js" }\n')
  writeFileSync(join(other, 'index.js'), OTHER)
  copyFileSync(join(users, 'bundled.mjs'), join(project, 'bundled.mjs'))
  const port = await freePort()
  const redis = await startThrowawayRedis(['--port', String(port)])
  try {
    await tryAll(named.length > 0 ? named : Object.keys(BUNDLERS), `redis://127.0.0.1:${port}`)
  } finally {
    await redis.end()
  }
})
