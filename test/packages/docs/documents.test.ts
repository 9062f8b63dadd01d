// Release: runs the documentation. Takes long: begins first. Runs alone: its programs change the process.
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { BESIDE, DOCUMENTS, fileOf, isApart } from './documents.js'
import { hasDecorators, programOf } from './program.js'
import { begin, end, runTests } from './support.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const isBuilt = process.env.SLUICE_TEST === 'built'
// Within this folder, so that imports find the dependencies of the tests.
const DIR = join(ROOT, 'test/.tmp/docs', isBuilt ? 'built' : 'source')

const documents = DOCUMENTS.map(({ name, blocks }) => ({
  name,
  blocks: blocks.map((block) => ({ ...block, file: join(DIR, fileOf(block)) })),
}))
const apart = documents.flatMap(({ blocks }) => blocks.filter(isApart))

/** Both forms of compiled decorators, whose syntax Node does not read. */
const SHAPES = ['standard', 'experimental'] as const
type Shape = (typeof SHAPES)[number]

/** The forms in which the decorators of a block are compiled: none, or for Nest one. */
function shapesOf(block: { readonly code: string }): readonly Shape[] {
  if (!hasDecorators(block)) return []
  return block.code.includes("from '@nestjs/common'") ? ['experimental'] : SHAPES
}

const lowered = (shape: Shape) => `${DIR}-${shape}-decorators`

/** Compiles the blocks with decorators into a folder from which their imports resolve the same. */
function lower(shape: Shape): void {
  rmSync(lowered(shape), { recursive: true, force: true })
  const files = documents.flatMap(({ blocks }) =>
    blocks.filter((block) => shapesOf(block).includes(shape)).map(({ file }) => file),
  )
  if (files.length === 0) return
  // Types are checked with those of all blocks.
  const options = ['--ignoreConfig', '--noCheck', '--noResolve', '--module', 'nodenext', '--target', 'es2022']
  if (shape === 'experimental') options.push('--experimentalDecorators')
  execFileSync(join(ROOT, 'node_modules/.bin/tsc'), [...options, '--outDir', lowered(shape), ...files])
}

let redis: RedisServer

beforeAll(async () => {
  rmSync(DIR, { recursive: true, force: true })
  mkdirSync(DIR, { recursive: true })
  for (const { blocks } of documents) {
    for (const block of blocks) writeFileSync(block.file, programOf(block, '../../../packages/docs/support.js', blocks))
  }
  const config = {
    extends: '../../../tsconfig.json',
    compilerOptions: {
      rootDir: '../../../..',
      // Those of Nest have no other form. `@RateLimited` is type-checked in both by test/http/decorator.
      experimentalDecorators: true,
      // Constructors of Nest declare properties.
      erasableSyntaxOnly: false,
      // Blocks are excerpts, so not every name is used.
      noUnusedLocals: false,
      noUnusedParameters: false,
      ...(isBuilt && { customConditions: [] }),
    },
    include: ['*.ts', '*.js'],
    exclude: apart.map(({ file }) => basename(file)),
  }
  writeFileSync(join(DIR, 'tsconfig.json'), JSON.stringify(config))
  for (const { file } of apart) {
    writeFileSync(`${file}.json`, JSON.stringify({ ...config, include: [basename(file)], exclude: [] }))
  }
  for (const shape of SHAPES) lower(shape)
  redis = await startRedis()
  process.env.REDIS_URL = redis.url
})
afterAll(async () => {
  delete process.env.REDIS_URL
  await redis.stop()
})
afterEach(end)

test('every block of the documentation type-checks', () => {
  for (const project of [DIR, ...apart.map(({ file }) => `${file}.json`)]) {
    let report = ''
    try {
      execFileSync(join(ROOT, 'node_modules/.bin/tsc'), ['-p', project], { encoding: 'utf8' })
    } catch (error) {
      report = String((error as { stdout?: string }).stdout)
    }
    expect(report).toBe('')
  }
})

describe.each(documents.filter(({ blocks }) => blocks.length > 0))('$name', ({ blocks }) => {
  test.each(blocks)('the block at $where does what it says', async (block) => {
    const { file, shown } = block
    const programs = hasDecorators(block)
      ? shapesOf(block).map((shape) => join(lowered(shape), basename(file).replace(/ts$/, 'js')))
      : [file]
    for (const program of programs) {
      await redis.flush()
      begin(shown)
      await import(/* @vite-ignore */ program)
      await runTests()
      end()
    }
  })
})

test('clients of Redis in the documentation listen for errors', () => {
  const withClients = documents
    .flatMap(({ blocks }) => blocks)
    .filter(({ code }) => /new (?:Redis|Cluster)\(|createClient\(/.test(code))
  expect(withClients.length).toBeGreaterThan(8)
  for (const { where, code } of withClients) expect(code, where).toMatch(/\.on\('error', /)
})

test('links between the documents lead to existing files and anchors', () => {
  for (const { name } of documents) {
    const links = readFileSync(join(ROOT, name), 'utf8').matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)
    for (const [link, path, anchor] of links) {
      const target = path ? join(ROOT, dirname(name), path) : join(ROOT, name)
      expect(existsSync(target), `${name}: ${link}`).toBe(true)
      if (anchor !== undefined) expect(anchorsOf(readFileSync(target, 'utf8')), `${name}: ${link}`).toContain(anchor)
    }
  }
})

/** The anchors of headings, as GitHub makes them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

test('the documents contain nothing that only tests need', () => {
  for (const { name } of documents)
    expect(readFileSync(join(ROOT, name), 'utf8'), name).not.toMatch(/<!-- (before|after)/)
})

test('every sidecar belongs to a document', () => {
  const files = readdirSync(BESIDE, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))
  expect(files.length).toBeGreaterThan(0)
  for (const file of files) expect(documents.map(({ name }) => name)).toContain(file)
})

/** Documents with commands for a terminal, which `test/cli` or `demo.test.ts` runs. */
const OF_COMMANDS = ['docs/examples.md', 'docs/gateways.md', 'docs/decider.md', 'packages/cli/README.md']

/** Documents without blocks. */
const WITHOUT_BLOCKS = [
  'docs/comparison.md',
  'docs/console-reference.md',
  'docs/production-checklist.md',
  'docs/threats.md',
]

test('every document has blocks in a language that is run, unless it is listed as an exception', () => {
  const names = documents.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['README.md', ...OF_COMMANDS]))
  const without = documents.filter(({ blocks }) => blocks.length === 0).map(({ name }) => name)
  expect(without.sort()).toEqual([...OF_COMMANDS, ...WITHOUT_BLOCKS].sort())
})
