import { readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'

const DOCS = fileURLToPath(new URL('../../../docs/', import.meta.url))
const require = createRequire(import.meta.url)

const pages = new Map(
  readdirSync(DOCS)
    .filter((name) => name.startsWith('migrating-from-'))
    .map((name) => [name, readFileSync(join(DOCS, name), 'utf8')]),
)

/** The names in the first column of a page's tables. */
function named(page: string): Set<string> {
  const rows = (pages.get(page) ?? '').split('\n').filter((line) => line.startsWith('|'))
  return new Set(
    rows.flatMap((row) => [...(row.split('|')[1] ?? '').matchAll(/`(\w+)[^`]*`/g)].map(([, name = '']) => name)),
  )
}

/** A file of the package as it is installed. */
function fileOf(name: string, path: string): string {
  let folder = dirname(require.resolve(name))
  while (!readdirSync(folder).includes('package.json')) folder = dirname(folder)
  return readFileSync(join(folder, path), 'utf8')
}

/** The names of a type's members at one depth of its body. */
function membersOf(types: string, declaration: RegExp, indent: string): string[] {
  const bodies = [...types.matchAll(declaration)].map(
    ({ index }) => types.slice(index).split(new RegExp(`\\n${indent.slice(1)}}|\\n}`))[0] ?? '',
  )
  return bodies.flatMap((body) =>
    [...body.matchAll(new RegExp(`^${indent}(?:readonly )?(\\w+)\\??:`, 'gm'))].map(([, name = '']) => name),
  )
}

const PEERS = [
  {
    page: 'migrating-from-express-rate-limit.md',
    options: membersOf(fileOf('express-rate-limit', 'dist/index.d.ts'), /^export type Options = \{/gm, '\t'),
    least: 20,
  },
  {
    page: 'migrating-from-express-rate-limit.md',
    options: membersOf(
      fileOf('rate-limit-redis', 'dist/index.d.ts'),
      /^type (Common|Single|Cluster)Options = /gm,
      '    ',
    ),
    least: 3,
  },
  {
    page: 'migrating-from-fastify-rate-limit.md',
    options: membersOf(
      fileOf('@fastify/rate-limit', 'types/index.d.ts'),
      /^ {2}export interface (CreateRateLimitOptions|RateLimitOptions|RateLimitPluginOptions) /gm,
      '    ',
    ),
    least: 20,
  },
  {
    page: 'migrating-from-koa-ratelimit.md',
    options: [...fileOf('koa-ratelimit', 'README.md').matchAll(/^\* `(\w+)`/gm)].map(([, name = '']) => name),
    least: 12,
  },
  {
    page: 'migrating-from-nestjs-throttler.md',
    options: membersOf(
      fileOf('@nestjs/throttler', 'dist/throttler-module-options.interface.d.ts'),
      /^export (interface ThrottlerOptions|type ThrottlerModuleOptions) /gm,
      '    ',
    ),
    least: 10,
  },
  {
    page: 'migrating-from-rate-limiter-flexible.md',
    options: membersOf(
      fileOf('rate-limiter-flexible', 'types.d.ts'),
      /^interface (IRateLimiter|IRLWrapper)\w*(Options|Opts)\w* /gm,
      '    ',
    ),
    least: 30,
  },
]

describe.each(PEERS)('$page', ({ page, options, least }) => {
  test('the page names every option in the types or documentation of the package', () => {
    expect(new Set(options).size).toBeGreaterThanOrEqual(least)
    expect([...new Set(options)].filter((name) => !named(page).has(name))).toEqual([])
  })
})

test('every option of another library with a hint is on a migration page', () => {
  const hints = readFileSync(
    fileURLToPath(new URL('../../../packages/core/src/util/option-hints.ts', import.meta.url)),
    'utf8',
  )
  const table = /PEER_OPTIONS = \{([\s\S]*?)\n\}/.exec(hints)?.[1] ?? ''
  const hinted = [...table.matchAll(/^ {2}(?:\/\*\* @deprecated \*\/ )?(\w+):/gm)].map(([, name = '']) => name)
  expect(hinted.length).toBeGreaterThan(40)
  const all = new Set([...pages.keys()].flatMap((page) => [...named(page)]))
  // What newcomers write, of no library that has a page.
  const guessed = ['algorithm', 'burst', 'concurrency', 'dryRun', 'failOpen', 'queue', 'trustProxy', 'weight']
  expect(hinted.filter((name) => !all.has(name) && !guessed.includes(name))).toEqual([])
})
