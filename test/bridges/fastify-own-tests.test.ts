import { spawn } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { byEffort } from '../support/effort.js'

/** The tests that @fastify/rate-limit installs with itself. */
const OWN = join(dirname(createRequire(import.meta.url).resolve('@fastify/rate-limit')), 'test')

/** Files without a store that could be ours: `redis-rate-limit` tests the peer's own. */
const LEFT_OUT = ['redis-rate-limit.test.js']

/** Tests that fail by design, with the reason. */
const DIFFER: Readonly<Record<string, string>> = {
  'With { increment: false } and continueExceeding the peek mirrors the active window':
    'a read reports the log, which has no more entries than the limit',
  'With { increment: false } and exponentialBackoff the peek reports the base window without escalating it':
    'exponentialBackoff is refused',
  'Exponential Backoff': 'exponentialBackoff is refused',
  'Global Exponential Backoff': 'exponentialBackoff is refused',
  'MAx safe Exponential Backoff': 'exponentialBackoff is refused',
}

const all = readdirSync(OWN, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.test.js') && !LEFT_OUT.includes(file))
  .sort()
const files = byEffort({ usual: ['group-rate-limit.test.js'], full: all })

test.each(files)(
  'the own tests of @fastify/rate-limit pass on our store, but for those that differ by design: %s',
  async (file) => {
    const { passed, failed } = await run(join(OWN, file))
    expect(failed.filter((name) => !(name in DIFFER))).toEqual([])
    expect(passed.filter((name) => name in DIFFER)).toEqual([])
    expect(passed.length + failed.length).toBeGreaterThan(0)
  },
)

/** The names of the tests of a file that pass and fail, run on the built packages by Node. */
async function run(file: string): Promise<{ passed: string[]; failed: string[] }> {
  const preload = fileURLToPath(new URL('own-tests/with-our-store.cjs', import.meta.url))
  const child = spawn(process.execPath, ['--require', preload, '--test-reporter', 'tap', file])
  let tap = ''
  child.stdout.on('data', (chunk) => (tap += chunk))
  await new Promise((resolve) => child.on('close', resolve))
  const named = (result: string) =>
    [...tap.matchAll(new RegExp(`^${result} \\d+ - (.*)$`, 'gm'))].map(([, name = '']) => name.replace(/ # SKIP.*/, ''))
  return { passed: named('ok'), failed: named('not ok') }
}
