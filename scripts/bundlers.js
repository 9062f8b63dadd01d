// The built packages in the bundles of their users: npm run bundlers [-- <bundler or package> …]
// - Each bundler makes a server in every way that keeps one copy of the core, and in one that makes two, which is an error.
// - Each bundler makes one file of a program for each package and all that it needs, in both formats, minified and not.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { bundleBy, bundlers } from './lib/bundlers.js'
import { root } from './lib/project.js'
import { run, whenStarted } from './lib/run.js'
import { install, place, withTarballs } from './lib/users-project.js'

const folder = join(root, '.tmp/bundlers')
const project = join(folder, 'project')

const INSTALLED = {
  '@fastify/rate-limit': '^11',
  '@nestjs/common': '^12',
  '@nestjs/core': '^12',
  '@nestjs/platform-express': '^12',
  '@opentelemetry/api': '~1.9.0',
  '@opentelemetry/sdk-metrics': '^2',
  '@rollup/plugin-commonjs': '^29',
  '@rollup/plugin-json': '^6',
  '@rollup/plugin-node-resolve': '^16',
  '@rollup/plugin-terser': '^1',
  esbuild: '^0.28',
  express: '^5',
  'express-rate-limit': '^8',
  fastify: '^5',
  hono: '^4',
  'hono-rate-limiter': '^0.5',
  ioredis: '^6',
  koa: '^3',
  pg: '^8',
  'prom-client': '^15',
  redis: '^6',
  'reflect-metadata': '^0.2',
  rollup: '^4',
  rxjs: '^7',
  vite: '^8',
  webpack: '^5',
}
/** What the server does not bundle in any way: these load files of their own. */
const NEVER_BUNDLED = ['express', 'ioredis', 'prom-client']

/** What packages load if it is there, and what is not. */
const NOT_INSTALLED = [
  /^@nestjs\/(?:microservices|websockets|platform-socket\.io)/,
  /^@fastify\/(?:static|view)/,
  /^class-(?:transformer|validator)/,
  /^pg-native$/,
]

/** Each has a program of its own, `package-users/bundled/<name>.mjs`. */
const packages = readdirSync(join(root, 'packages'))

const FORMATS = /** @type {const} */ (['esm', 'cjs'])
const FILES = { esm: 'program.mjs', cjs: 'program.cjs' }

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

/**
 * Bundles a program, and runs it.
 *
 * @param {string} bundler
 * @param {import('./lib/bundlers.js').Bundling} bundling
 * @param {Record<string, string>} env
 * @returns {Promise<string>} what it prints, or the error
 */
async function outputOf(bundler, bundling, env) {
  try {
    await bundleBy(project, bundler, bundling)
    // pnpm sets NODE_PATH, by which programs find what is installed here.
    return await run(process.execPath, [bundling.outfile], {
      cwd: project,
      env: { ...env, NODE_PATH: '' },
      quiet: true,
    })
  } catch (error) {
    return String(/** @type {Error} */ (error).message)
  }
}

/** @param {string} id */
const isOfNode = (id) => id.startsWith('node:') || isBuiltin(id)

/** @param {string} bundler @param {Record<string, string>} env */
async function tryWays(bundler, env) {
  for (const [way, { external, error }] of Object.entries(WAYS)) {
    const printed = await outputOf(
      bundler,
      {
        entry: join(project, 'bundled.mjs'),
        outfile: join(project, `${bundler} ${way}.mjs`.replaceAll(' ', '-').toLowerCase()),
        isExternal: (id) => isOfNode(id) || NEVER_BUNDLED.includes(id) || external.some((each) => each.test(id)),
      },
      env,
    )
    if (!(error ?? /^one copy$/m).test(printed)) throw new Error(`${bundler}, ${way}:\n${printed}`)
    console.log(`${bundler}, ${way}: ${error ? 'an error says that there are two copies' : 'one copy'}`)
  }
}

/**
 * Each package with everything inside, in both formats, minified and not. The bundles run where nothing is installed.
 *
 * @param {string} bundler @param {string[]} names of packages @param {Record<string, string>} env
 * @returns {Promise<string[]>} what fails
 */
async function tryPackages(bundler, names, env) {
  const failures = []
  for (const name of names) {
    const worked = []
    for (const format of FORMATS) {
      for (const isMinified of [false, true]) {
        const what = `${format}${isMinified ? ', minified' : ''}`
        const outfile = join(
          folder,
          'alone',
          `${bundler} ${name} ${what}`.replaceAll(/\W+/g, '-').toLowerCase(),
          FILES[format],
        )
        const printed = await outputOf(
          bundler,
          {
            entry: join(project, 'bundled', `${name}.mjs`),
            outfile,
            isExternal: (id) => isOfNode(id) || NOT_INSTALLED.some((each) => each.test(id)),
            format,
            isMinified,
          },
          env,
        )
        if (/^works$/m.test(printed)) worked.push(what)
        else {
          failures.push(`${bundler}, @sluice/${name}, ${what}`)
          console.error(`${failures.at(-1)}:\n${printed.slice(-3000)}`)
        }
      }
    }
    console.log(`${bundler}, @sluice/${name}: ${worked.join('; ') || 'nothing'} works`)
  }
  return failures
}

await whenStarted(import.meta.url, async () => {
  const named = process.argv.slice(2)
  const known = [...bundlers, ...packages]
  const unknown = named.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`there is no ${unknown}; there are ${known.join(', ')}`)
  const orAll = (/** @type {string[]} */ names) => {
    const some = names.filter((name) => named.includes(name))
    return some.length > 0 ? some : names
  }
  await withTarballs('bundlers', async ({ tarballs, env }) => {
    await install(project, { ...INSTALLED, ...tarballs })
    const other = join(project, 'node_modules/other-package')
    mkdirSync(other, { recursive: true })
    writeFileSync(join(other, 'package.json'), '{ "name": "other-package", "version": "1.0.0", "main": "index.js" }\n')
    writeFileSync(join(other, 'index.js'), OTHER)
    for (const program of ['bundled.mjs', 'bundled']) place(project, program)
    const failures = []
    for (const bundler of orAll(bundlers)) {
      await tryWays(bundler, env)
      failures.push(...(await tryPackages(bundler, orAll(packages), env)))
    }
    if (failures.length > 0) throw new Error(`these do not work:\n${failures.join('\n')}`)
  })
})
