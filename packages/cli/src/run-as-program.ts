import { run } from './run.js'

/** Runs the command line of this process, and sets its exit code. What `bin/sluice.cjs` calls. */
export async function runAsProgram(version: string): Promise<void> {
  // A reader that has seen enough, such as `head`, closes the pipe.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
  })
  const { env, stdout, stderr } = process
  process.exitCode = await run(process.argv.slice(2), { env, stdout, stderr, version })
}
