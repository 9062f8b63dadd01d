import { freePort } from '../../../scripts/lib/ports.js'
import { type Program, startExample } from './program.js'

export interface Running {
  readonly program: Program
  readonly port: number
  readonly url: string
}

/**
 * Starts an example on a free port, and waits until it is ready. An example that needs the next ports, too, may find
 * one of them taken; then others are tried.
 */
export async function startOnPorts(file: string, env: Record<string, string> = {}): Promise<Running> {
  for (let tries = 0; ; tries++) {
    const port = await freePort()
    try {
      const program = await startExample(file, 1, { ...env, PORT: String(port) })
      return { program, port, url: `http://127.0.0.1:${port}` }
    } catch (error) {
      if (tries > 5 || !/EADDRINUSE/.test(String(error))) throw error
    }
  }
}
