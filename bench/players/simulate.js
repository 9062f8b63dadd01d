// Plays a generated log by one policy, in a process of its own.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { simulate } from '../../packages/cli/dist/simulate.js'
import { answer } from '../lib/child.js'

const WRITER = fileURLToPath(new URL('log-writer.js', import.meta.url))

answer({
  /** @param {{ lines: number, clients: number, limit: object, curve: boolean }} played */
  async play({ lines, clients, limit, curve }) {
    const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'))
    const document = join(folder, 'policies.json')
    writeFileSync(document, JSON.stringify({ version: 1, policies: { api: { limits: [limit] } } }))
    const writer = spawn(process.execPath, [WRITER, String(lines), String(clients)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const cpu = process.cpuUsage()
    const startedMs = performance.now()
    const report = await simulate({ files: ['-'], document, curve, stdin: writer.stdout })
    const ms = performance.now() - startedMs
    const { user, system } = process.cpuUsage(cpu)
    rmSync(folder, { recursive: true })
    if (report.requests.total !== lines) throw new Error(`${report.requests.total} of ${lines} lines were played`)
    // In kilobytes.
    const rssMb = process.resourceUsage().maxRSS / 1000
    return { perSecond: (1000 * lines) / ms, us: (user + system) / lines, rssMb, clients: report.clients.seen }
  },
})
