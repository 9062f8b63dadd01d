import { type DoctorReport, type Finding, run } from '@sluice/cli'

export interface Outcome {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command line in this process, as the program does in its own. */
export async function sluice(args: readonly string[], env: Record<string, string> = {}): Promise<Outcome> {
  const written = { stdout: '', stderr: '' }
  const output = (name: keyof typeof written) => ({
    write: (text: string) => {
      written[name] += text
    },
  })
  const code = await run(args, { env, stdout: output('stdout'), stderr: output('stderr'), version: '1.2.3' })
  return { code, ...written }
}

export interface Examined extends DoctorReport {
  readonly code: number
  /** The findings of one check. */
  of(check: string): readonly Finding[]
  /** Warnings and errors. */
  readonly problems: readonly Finding[]
}

/** The report of doctor about the Redis at this URL. */
export async function examined(url: string, ...args: string[]): Promise<Examined> {
  // A busy machine must not cause a finding.
  const patient = ['--store-timeout', '60s']
  const { code, stdout, stderr } = await sluice(['doctor', '--json', ...patient, ...args], { REDIS_URL: url })
  return examinedIn(code, stdout, stderr)
}

/** The report of doctor about the proxies before the application whose route `/ip` this port reaches. */
export async function examinedProxies(port: number): Promise<Examined> {
  const { code, stdout, stderr } = await sluice(['doctor', '--json', '--url', `http://127.0.0.1:${port}/ip`])
  return examinedIn(code, stdout, stderr)
}

function examinedIn(code: number, stdout: string, stderr: string): Examined {
  if (stderr !== '') throw new Error(stderr)
  const report = JSON.parse(stdout) as DoctorReport
  return {
    ...report,
    code,
    of: (check) => report.findings.filter((finding) => finding.check === check),
    problems: report.findings.filter(({ severity }) => severity !== 'ok'),
  }
}

/** Settings that cause no warning. */
export const HEALTHY = ['maxmemory 100mb', 'maxmemory-policy noeviction']

/** The rules of a line to paste in SECURITY.md or docs/doctor.md: everything after the name of the user. */
export function rulesIn(document: string, pattern: RegExp): string[] {
  const [, rules] = pattern.exec(document) ?? []
  if (rules === undefined) throw new Error(`no line fits ${pattern}`)
  return rules.trim().split(/\s+/)
}
