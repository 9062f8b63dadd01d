// Plays a generated log by one policy, in a process of its own.
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { simulate } from '../../packages/simulate/dist/index.js'
import { answer } from '../lib/child.js'

const WRITER = fileURLToPath(new URL('log-writer.js', import.meta.url))

answer({
  /** @param {{ lines: number, clients: number, limit: object, curve: boolean }} played */
  async play({ lines, clients, limit, curve }) {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
    const document = join(folder, 'policies.json')
    writeFileSync(document, JSON.stringify({ version: 1, policies: { api: { limits: [limit] } } }))
    // As for a shell's <(…): logs of pipes are read in a thread of their own.
    const pipe = join(folder, 'access.log')
    execFileSync('mkfifo', [pipe])
    const write = ['-c', 'exec "$0" "$@" > "$PIPE"', process.execPath, WRITER, String(lines), String(clients)]
    spawn('sh', write, { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, PIPE: pipe } })
    const cpu = process.cpuUsage()
    const startedMs = performance.now()
    const report = await simulate({ logs: [pipe], document, curve })
    const ms = performance.now() - startedMs
    const { user, system } = process.cpuUsage(cpu)
    rmSync(folder, { recursive: true })
    if (report.requests.total !== lines) throw new Error(`${report.requests.total} of ${lines} lines were played`)
    // In kilobytes.
    const rssMb = process.resourceUsage().maxRSS / 1000
    return { perSecond: (1000 * lines) / ms, us: (user + system) / lines, rssMb, clients: report.clients.seen }
  },
})
