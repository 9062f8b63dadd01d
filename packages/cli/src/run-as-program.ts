import { createInterface } from 'node:readline/promises'
import { run } from './run.js'

/** Runs the command line of this process, and sets its exit code. `bin/sluice.cjs` calls it. */
export async function runAsProgram(version: string): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // A reader that has seen enough, such as `head`, closes the pipe.
    if (error.code === 'EPIPE') return
    process.stderr.write(`sluice: cannot write the output (${error.message})\n`)
    process.exit(2)
  })
  const { env, stdout, stderr } = process
  const isTerminal = process.stdin.isTTY && stderr.isTTY
  const environment = { env, stdout, stderr, version, untilStopped, ...(isTerminal && { confirm }) }
  process.exitCode = await run(process.argv.slice(2), environment)
}

/** The first signal requests an orderly end. A second one ends the process at once, as nothing listens to it. */
function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      for (const signal of SIGNALS) process.removeListener(signal, stop)
      resolve()
    }
    for (const signal of SIGNALS) process.on(signal, stop)
  })
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

/** Whether a person confirms with yes. Any other input, and Ctrl-C, is a no. */
async function confirm(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const leaving = new AbortController()
  terminal.once('SIGINT', () => leaving.abort())
  terminal.once('close', () => leaving.abort())
  try {
    const said = await terminal.question(`${question} [y/N] `, { signal: leaving.signal })
    return /^y(es)?$/i.test(said.trim())
  } catch {
    return false
  } finally {
    terminal.close()
  }
}
