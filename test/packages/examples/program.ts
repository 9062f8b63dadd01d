import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { ensureBuilt } from '../../support/built-core.js'

/** An example, run in the same way as by its readers. */
export interface Program {
  /** The lines of its standard output so far. */
  readonly lines: readonly string[]
  /** The whole of its standard output until now. */
  output(): string
  /** Types a text into its terminal. */
  type(text: string): void
  /** Sends a signal and resolves to the exit code; null if the signal killed it. */
  end(signal: NodeJS.Signals): Promise<number | null>
}

const running = new Set<ChildProcess>()
// Leaves no server behind, however the tests end.
process.once('exit', () => {
  for (const child of running) child.kill('SIGKILL')
})

/**
 * Runs `examples/{file}` and waits until it has written `lines` lines.
 *
 * @throws Error with its output, if it ends before that
 */
export async function startExample(file: string, lines: number, env: Record<string, string> = {}): Promise<Program> {
  ensureBuilt('core', 'policies', 'prometheus', 'express', 'koa', 'fastify', 'nestjs', 'console')
  const path = fileURLToPath(new URL(`../../../examples/${file}`, import.meta.url))
  // Without the options of the test runner, as a plain Node finds the built packages.
  const child = spawn(process.execPath, [path], { env: { ...process.env, NODE_OPTIONS: '', ...env } })
  running.add(child)
  const closed = once(child, 'close').then(([code]) => {
    running.delete(child)
    return code as number | null
  })

  let output = ''
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  await new Promise<void>((resolve, reject) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text
      if (output.split('\n').length > lines) resolve()
    })
    closed.then((code) => reject(new Error(`${file} ended with ${code}: ${output}${errors}`)))
  })
  return {
    lines: output.split('\n').slice(0, lines),
    output: () => output,
    type: (text) => void child.stdin.write(text),
    end(signal) {
      child.kill(signal)
      return closed
    },
  }
}
