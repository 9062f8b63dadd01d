import { execFile } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { adviceHere, find } from '../../scripts/lib/system-program.js'
import { PROGRAMS } from '../../scripts/programs.js'
import { startLeashed } from './leash.js'
import { until } from './until.js'

/** The paths of Prometheus's programs. Fails, never skips, without them. */
function programs(): { readonly server: string; readonly tool: string } {
  const server = find(PROGRAMS.prometheus)
  if (server === undefined) throw new Error(adviceHere([PROGRAMS.prometheus]))
  return { server, tool: join(dirname(server), 'promtool') }
}

/**
 * Runs promtool with this standard input. Resolves to its whole output, or rejects with it if promtool finds a problem.
 */
export async function promtool(args: readonly string[], input = ''): Promise<string> {
  const running = promisify(execFile)(programs().tool, [...args], { timeout: 120_000 })
  running.child.stdin?.end(input)
  try {
    const { stdout, stderr } = await running
    return stdout + stderr
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    throw new Error(`promtool ${args.join(' ')}: ${stdout}${stderr}`, { cause: error })
  }
}

/** One series of a result, with its labels and its present value. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>
  readonly value: number
}

export interface Prometheus {
  readonly url: string
  /** The present value of a query. */
  query(expression: string): Promise<readonly Series[]>
  /** The field `data` of a response of its HTTP API. */
  ask<Data>(path: string): Promise<Data>
  stop(): Promise<void>
}

/** Starts a real Prometheus with these settings, in its own folder, together with these files. */
export async function startPrometheus(
  settings: string,
  port: number,
  files: Readonly<Record<string, string>> = {},
): Promise<Prometheus> {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-prometheus-'))
  for (const [name, text] of Object.entries({ ...files, 'prometheus.yml': settings })) {
    writeFileSync(join(dir, name), text)
  }
  const args = [
    `--config.file=${join(dir, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(dir, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const server = await startLeashed(programs().server, args, dir)
  const url = `http://127.0.0.1:${port}`
  const ask = async <Data>(path: string): Promise<Data> => {
    const response = await fetch(`${url}/api/v1/${path}`)
    const { status, data, error } = (await response.json()) as { status: string; data: Data; error?: string }
    if (status !== 'success') throw new Error(error)
    return data
  }
  try {
    await until('Prometheus is ready', async () => (await fetch(`${url}/-/ready`)).ok, { withinMs: 60_000 })
  } catch (error) {
    await server.end()
    throw new Error(`Prometheus did not start: ${server.errorText()}`, { cause: error })
  }
  return {
    url,
    ask,
    async query(expression) {
      const { result } = await ask<{ result: { metric: Series['metric']; value: [number, string] }[] }>(
        `query?query=${encodeURIComponent(expression)}`,
      )
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }))
    },
    stop: () => server.end(),
  }
}
