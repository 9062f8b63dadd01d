import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { SimulationReport } from '../../packages/simulate/src/report.js'
import { type Outcome, sluice } from '../cli/support.js'

/** Writes files into a folder that ends with the test, and returns the path of each by its name. */
export function filesOf<Name extends string>(texts: Readonly<Record<Name, string>>): Readonly<Record<Name, string>> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-simulate-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const paths = {} as Record<Name, string>
  for (const [name, text] of Object.entries(texts) as [Name, string][]) {
    paths[name] = join(folder, name)
    writeFileSync(paths[name], text)
  }
  return paths
}

/** Plays a log by a document, with names of clients. */
export async function simulated(
  log: string,
  document: object,
  args: readonly string[] = [],
): Promise<Outcome & { readonly report: SimulationReport }> {
  const files = filesOf({ 'access.log': log, 'policies.json': JSON.stringify(document) })
  const outcome = await sluice([
    'simulate',
    files['access.log'],
    '--document',
    files['policies.json'],
    '--json',
    '--identities',
    'plain',
    ...args,
  ])
  if (outcome.stderr !== '') throw new Error(outcome.stderr)
  return { ...outcome, report: JSON.parse(outcome.stdout) }
}

/** A line of the combined format. `second`: of a day in March 2026. */
export function line(second: number, ip: string, target = '/', status = 200, agent = 'curl/8.9'): string {
  const [h, m, s] = [Math.floor(second / 3600), Math.floor(second / 60) % 60, second % 60]
  const time = [h, m, s].map((part) => String(part).padStart(2, '0')).join(':')
  return `${ip} - - [01/Mar/2026:${time} +0000] "GET ${target} HTTP/1.1" ${status} 12 "-" "${agent}"\n`
}

/** One limit of every client on one policy. */
export function policyOf(limit: object, more: object = {}): object {
  return { version: 1, policies: { api: { limits: [limit], ...more } } }
}
