// Release: packages as users have them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { run } from '../../scripts/lib/run.js'
import { ensureBuilt } from '../support/built-core.js'

const folder = mkdtempSync(join(tmpdir(), 'sluice-copies-'))

beforeAll(async () => {
  await ensureBuilt('core')
  const contents = `export * from '@sluice/core'; export { startCounting } from '@sluice/core/metrics'; export { createGuard } from '@sluice/core/http'`
  for (const copy of ['one', 'two']) {
    const stdin = { contents, resolveDir: import.meta.dirname }
    const outfile = join(folder, `${copy}.mjs`)
    await build({ stdin, outfile, bundle: true, platform: 'node', format: 'esm', logLevel: 'error' })
  }
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** What a program prints that has two copies of the core, in a process of its own. */
async function printed(program: string): Promise<string> {
  const file = join(folder, 'program.mjs')
  const imports = "import * as one from './one.mjs'\nimport * as two from './two.mjs'"
  const limit = "const limit = { limit: 1, window: '1m' }"
  const attempt =
    'const attempt = async (f) => { try { await f(); console.log("done") } catch (e) { console.log(e.code, e.message) } }'
  writeFileSync(file, [imports, limit, attempt, program].join('\n'))
  return run(process.execPath, [file], { quiet: true })
}

const twoCopies = (where: string) =>
  new RegExp(
    `^TWO_COPIES ${where}.*of @sluice/core\\. One is in \\S*(one|two)\\.mjs, the other in \\S*(one|two)\\.mjs\\. `,
  )

test('two copies of the core that do not meet both decide', async () => {
  const program = `for (const copy of [one, two]) {
    const limiter = copy.createLimiter(limit)
    console.log((await limiter.consume('ann')).allowed, (await limiter.consume('ann')).allowed)
  }`
  expect(await printed(program)).toBe('true false\ntrue false\n')
})

test('a store that another copy of the core has made is rejected', async () => {
  const program = 'await attempt(() => one.createLimiter({ ...limit, store: two.memoryStore() }))'
  expect(await printed(program)).toMatch(twoCopies('policy "default": store: it was made by another copy'))
})

test('a verdict that another copy of the core has made is rejected', async () => {
  const program = `const verdict = await two.createLimiter(limit).consume('ann')
  await attempt(() => one.createLimiter(limit).refund('ann', verdict))`
  expect(await printed(program)).toMatch(twoCopies('policy "default": verdict: it was made by another copy'))
})

test.each(['two.startCounting()', "two.events.on('refused', () => {})"])(
  '%s is rejected where another copy of the core has limiters, and the other way about',
  async (observe) => {
    const later = `one.createLimiter(limit); await attempt(() => ${observe})`
    expect(await printed(later)).toMatch(twoCopies('events: on: limiters of another copy would be missing'))
    const earlier = `${observe}; await attempt(() => one.createLimiter(limit))`
    expect(await printed(earlier)).toMatch(
      twoCopies('policy "default": its events and metrics are read from another copy'),
    )
  },
)

test('permits of a limit from before the core was loaded again are held and released', async () => {
  const program = `const again = await import('./one.mjs?again')
  const { EventEmitter } = await import('node:events')
  const limits = [one.concurrency({ limit: 1 })]
  const guard = again.createGuard({ limits, key: () => 'all' })
  const response = Object.assign(new EventEmitter(), { headersSent: true, writableFinished: false, destroyed: false })
  const context = { request: {}, response, header: () => undefined, getResponseHeader: () => undefined, method: 'GET', path: '/' }
  console.log((await guard(context)).proceed, (await guard(context)).proceed)
  await again.releasePermits(response)
  console.log((await guard(context)).proceed)
  process.exit()`
  expect(await printed(program.replace("import * as two from './two.mjs'", ''))).toBe('true false\ntrue\n')
})

test('a copy that is loaded again from its file is no second copy', async () => {
  const program = `const again = await import('./one.mjs?again')
  const store = one.memoryStore()
  again.startCounting()
  console.log((await again.createLimiter({ ...limit, store }).consume('ann')).allowed)`
  expect(await printed(program.replace("import * as two from './two.mjs'", ''))).toBe('true\n')
})
