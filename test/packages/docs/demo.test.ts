// Release: runs the documentation.
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { freePort } from '../../../scripts/lib/ports.js'
import { type Program, startExample } from '../examples/program.js'
import { fencesOf } from './markdown.js'

const EXAMPLES = readFileSync(fileURLToPath(new URL('../../../docs/examples.md', import.meta.url)), 'utf8')

/** The commands in the section about the demo, each with the output shown below it. */
const commands = fencesOf(EXAMPLES)
  .filter(({ language, text }) => language === 'sh' && /^curl|; do curl/m.test(text))
  .flatMap(({ text }) => [...text.matchAll(/^([^#\n].*)\n# → (.*)$/gm)])
  .map(([, command = '', output = '']) => ({ command, output }))

/** If the ports are not free, the demo ends, and the next three are tried. */
async function startDemo(): Promise<{ demo: Program; first: number }> {
  for (let tries = 0; ; tries++) {
    const first = await freePort()
    try {
      return { demo: await startExample('demo/main.js', 3, { REDIS_URL: '', PORT: String(first) }), first }
    } catch (error) {
      if (tries > 5 || !/EADDRINUSE/.test(String(error))) throw error
    }
  }
}

/** The shortest window of the demo's limits. A command that takes less has met every limit as it is. */
const WINDOW_MS = 1000
const TRIES = 20

async function outputOf(command: string, first: number): Promise<{ printed: string; ms: number }> {
  const local = command.replace(/\b300([012])\b/g, (_, n) => String(first + Number(n)))
  const began = performance.now()
  const { stdout } = await promisify(execFile)('sh', ['-c', local], { timeout: 100_000 })
  return { printed: stdout.trim(), ms: performance.now() - began }
}

test('the commands for the demo in examples.md print the output that it shows', async () => {
  // Every curl line of the section, not only those with an output.
  expect(commands.length).toBe(EXAMPLES.match(/^(curl|for .*; do curl).*$/gm)?.length)
  expect(commands.length).toBeGreaterThan(0)
  let { demo, first } = await startDemo()
  const stop = async () => expect(await demo.end('SIGTERM')).toBe(0)
  try {
    for (const { command, output } of commands) {
      let { printed, ms } = await outputOf(command, first)
      // Its requests were too far apart, as on a busy machine: it is tried again without what it has spent.
      for (let tries = 1; printed !== output && ms >= WINDOW_MS && tries < TRIES; tries++) {
        await stop()
        ;({ demo, first } = await startDemo())
        ;({ printed, ms } = await outputOf(command, first))
      }
      expect(printed, command).toBe(output)
    }
  } finally {
    await stop()
  }
})
