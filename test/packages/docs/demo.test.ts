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

test('the commands for the demo in examples.md print the output that it shows', async () => {
  // Every curl line of the section, not only those with an output.
  expect(commands.length).toBe(EXAMPLES.match(/^(curl|for .*; do curl).*$/gm)?.length)
  expect(commands.length).toBeGreaterThan(0)
  const { demo, first } = await startDemo()
  try {
    for (const { command, output } of commands) {
      const local = command.replace(/\b300([012])\b/g, (_, n) => String(first + Number(n)))
      const { stdout } = await promisify(execFile)('sh', ['-c', local], { timeout: 100_000 })
      expect(stdout.trim(), command).toBe(output)
    }
  } finally {
    expect(await demo.end('SIGTERM')).toBe(0)
  }
  // Some of the routes are slow on purpose.
})
