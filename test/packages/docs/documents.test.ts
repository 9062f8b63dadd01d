import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type RedisServer, startRedis } from '../../support/redis-server.js'
import { blocksOf, sidecarsOf } from './markdown.js'
import { hasDecorators, programOf } from './program.js'
import { begin, end } from './support.js'

const ROOT = fileURLToPath(new URL('../../..', import.meta.url))
const isBuilt = process.env.SLUICE_TEST === 'built'
// In here, so that imports find what the tests may import.
const DIR = join(ROOT, 'test/.tmp/docs', isBuilt ? 'built' : 'source')

const BESIDE = fileURLToPath(new URL('beside', import.meta.url))

const packages = readdirSync(join(ROOT, 'packages')).map((name) => `packages/${name}/README.md`)
const documents = ['README.md', ...markdownIn('docs'), ...packages].map((name) => ({
  name,
  blocks: blocksOf(name, readFileSync(join(ROOT, name), 'utf8'), sidecarsBeside(name)).map((block) => ({
    ...block,
    file: join(DIR, `${block.where.replace(/\W+/g, '-')}.${block.language}`),
  })),
}))

/** Blocks with packages that declare members of a framework's types which ours declare too: type-checked each by itself. */
const apart = documents.flatMap(({ blocks }) =>
  blocks.filter(({ code }) => code.includes("from '@fastify/rate-limit'")),
)

/** What the tests add to the blocks of a document, at the same path in `beside/`. */
function sidecarsBeside(name: string): ReturnType<typeof sidecarsOf> {
  const file = join(BESIDE, name)
  return existsSync(file) ? sidecarsOf(file, readFileSync(file, 'utf8')) : new Map()
}

function markdownIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder))
    .filter((file) => file.endsWith('.md'))
    .sort()
    .map((file) => `${folder}/${file}`)
}

/** Both shapes that compilers give to decorators, which Node does not read as they are written. */
const SHAPES = ['standard', 'experimental'] as const

const lowered = (shape: (typeof SHAPES)[number]) => `${DIR}-${shape}-decorators`

/** Compiles the blocks with decorators to where they find what they import, as from where they come. */
function lower(shape: (typeof SHAPES)[number]): void {
  rmSync(lowered(shape), { recursive: true, force: true })
  const files = documents.flatMap(({ blocks }) => blocks.filter(hasDecorators).map(({ file }) => file))
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
  for (const block of documents.flatMap(({ blocks }) => blocks)) {
    writeFileSync(block.file, programOf(block, '../../../packages/docs/support.js'))
  }
  const config = {
    extends: '../../../tsconfig.json',
    compilerOptions: {
      rootDir: '../../../..',
      // Blocks show what there is; not all that they name is used.
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
      ? SHAPES.map((shape) => join(lowered(shape), basename(file).replace(/ts$/, 'js')))
      : [file]
    for (const program of programs) {
      await redis.flush()
      begin(shown)
      await import(/* @vite-ignore */ program)
      end()
    }
  })
})

test('clients of Redis have a listener for errors, as ioredis prints each of them else', () => {
  const withClients = documents
    .flatMap(({ blocks }) => blocks)
    .filter(({ code }) => /new (?:Redis|Cluster)\(|createClient\(/.test(code))
  expect(withClients.length).toBeGreaterThan(8)
  for (const { where, code } of withClients) expect(code, where).toMatch(/\.on\('error', /)
})

test('links between the documents lead somewhere', () => {
  for (const { name } of documents) {
    const links = readFileSync(join(ROOT, name), 'utf8').matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)
    for (const [link, path, anchor] of links) {
      const target = path ? join(ROOT, dirname(name), path) : join(ROOT, name)
      expect(existsSync(target), `${name}: ${link}`).toBe(true)
      if (anchor !== undefined) expect(anchorsOf(readFileSync(target, 'utf8')), `${name}: ${link}`).toContain(anchor)
    }
  }
})

/** What GitHub makes of headings. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replace(/[^\w\- ]/g, '')
      .replaceAll(' ', '-'),
  )
}

test('what tests need is not in the documents, which are read as they are on npm', () => {
  for (const { name } of documents)
    expect(readFileSync(join(ROOT, name), 'utf8'), name).not.toMatch(/<!-- (before|after)/)
})

test('every sidecar lies beside a document', () => {
  const files = readdirSync(BESIDE, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.md'))
  expect(files.length).toBeGreaterThan(0)
  for (const file of files) expect(documents.map(({ name }) => name)).toContain(file)
})

/** What these show is typed into a terminal, and `test/cli` or `demo.test.ts` tries it. */
const OF_COMMANDS = ['docs/doctor.md', 'docs/examples.md', 'docs/gateways.md', 'packages/cli/README.md']

/** Lists. */
const WITHOUT_BLOCKS = ['docs/index.md', 'docs/limitations.md', 'docs/production-checklist.md']

test('the documentation has blocks, each in a language that is run', () => {
  const names = documents.map(({ name }) => name)
  expect(names).toEqual(expect.arrayContaining(['README.md', ...OF_COMMANDS]))
  const without = documents.filter(({ blocks }) => blocks.length === 0).map(({ name }) => name)
  expect(without.sort()).toEqual([...OF_COMMANDS, ...WITHOUT_BLOCKS].sort())
})
