import type { Terminal } from './terminal.js'

const EVERY_MS = 1000

/** Shows a person how long a step has been under way, once that is longer than a second. */
export async function withProgress<Result>(
  stderr: Terminal,
  what: string,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!stderr.isTTY) return work()
  let seconds = 0
  const timer = setInterval(() => stderr.steer(`\r${what}: ${++seconds} s`), EVERY_MS)
  try {
    return await work()
  } finally {
    clearInterval(timer)
    // Clears the line.
    if (seconds > 0) stderr.steer('\r\u001b[K')
  }
}
